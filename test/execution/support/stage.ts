import { expect } from 'chai';
import type { ExecutionRequest } from '../../../lib/execution/api.js';
import type { ExecutionConfig } from '../../../lib/config/config.js';
import type { Environment } from '../../../lib/environments/environment.js';
import type { Executions } from '../../../lib/execution/executions.js';
import { TestRunner } from '../../support/claimed-runner.js';
import type { Begun } from '../../support/executions.js';
import { begin, executionRequest, STEADY_PULSE, startExecutions } from '../../support/executions.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import { PlayedExecs } from '../../support/played-execs.js';

export interface Stage {
  readonly clock: FakeClock;
  readonly nomad: PlayedExecs;
  readonly executions: Executions;
  /** Replace `answers` for a Nomad that is silent. */
  readonly pulse: { answers: () => Promise<boolean> };
  /** Reasons for which the environment was reported. */
  readonly unfit: readonly string[];
  /** Replace it for a further one. */
  runner: TestRunner;
  start(overrides?: Partial<ExecutionRequest>): Promise<Begun>;
  /** Ends what a test left running and checks that nothing of it stays. */
  close(): Promise<void>;
}

/** Executions whose execs and clock are played by a test. */
export async function openStage(execution: Partial<ExecutionConfig> = {}): Promise<Stage> {
  const clock = new FakeClock();
  const nomad = new PlayedExecs();
  const unfit: string[] = [];
  const onFitness = (_environment: Environment, reason: string | undefined): void =>
    void (reason !== undefined && unfit.push(reason));
  const pulse = { answers: () => STEADY_PULSE.answers() };
  const executions = await startExecutions({ nomad, clock, execution, onFitness, pulse });
  const stage: Stage = {
    clock,
    nomad,
    executions,
    pulse,
    unfit,
    runner: new TestRunner(),
    async start(overrides = {}) {
      const begun = begin(executions, stage.runner, executionRequest('true', overrides));
      await settle();
      return begun;
    },
    async close() {
      const stopped = executions.stop();
      await clock.advance(5000);
      await stopped;
      expect(executions.active).to.equal(0);
      expect(clock.armed).to.equal(0);
      expect(stage.runner.activities).to.equal(0);
    },
  };
  return stage;
}

/** Whether a promise has settled, once everything under way has. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  await settle();
  return Promise.race([promise.then(() => true), settle().then(() => false)]);
}
