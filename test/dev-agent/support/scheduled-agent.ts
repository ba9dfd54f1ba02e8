import { FakeClock } from '../../support/fake-clock.js';
import { eventually } from '../../support/waiting.js';
import type { EvaluationJson } from './agent-json.js';
import { RawAgent } from './raw-agent.js';

/** An agent with a node of a thousand each, whose tasks are simulated and whose clock moves only when it is told. */
export class ScheduledAgent extends RawAgent {
  readonly clock: FakeClock;

  private constructor(clock: FakeClock) {
    super({ driver: 'simulated', clock, capacity: { cpuMhz: 1000, memoryMb: 1000 } });
    this.clock = clock;
  }

  static async begin(): Promise<ScheduledAgent> {
    const agent = new ScheduledAgent(new FakeClock());
    await agent.agent.start();
    return agent;
  }

  /** Lets the node report what it has to report, until what is asked for is there. */
  async settled<T>(what: string, ask: () => Promise<T>, isThere: (value: T) => boolean): Promise<T> {
    let value = await ask();
    await eventually(what, async () => {
      await this.clock.advance(300);
      value = await ask();
      return isThere(value);
    });
    return value;
  }

  /** Client and desired status of each allocation of a job. */
  async statusesOf(jobId: string): Promise<string[]> {
    const all = await this.allocations(jobId);
    return all.map((one) => `${one.ClientStatus}/${one.DesiredStatus}`);
  }

  evaluationsOf(jobId: string): Promise<EvaluationJson[]> {
    return this.get(`/v1/job/${jobId}/evaluations`);
  }

  /** Resolves with the statuses once an allocation of the job runs. */
  running(jobId: string): Promise<string[]> {
    return this.settled(
      `${jobId} to run`,
      () => this.statusesOf(jobId),
      (all) => all.includes('running/run'),
    );
  }
}
