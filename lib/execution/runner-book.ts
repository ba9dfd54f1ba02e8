import type { ExecutionId } from '../base/ids.js';
import type { ProgramSignal } from '../base/program-signals.js';
import type { Logger } from '../base/log.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { RunnerProcess, RunnerUser } from '../shell/frames.js';
import { staysAsParent } from '../shell/run-command.js';
import type { KillDeps } from './kill.js';
import { hangUpTree, killTree } from './kill.js';
import type { Pulse } from './pulse.js';
import { sendSignal } from './signals.js';

/** Executions that ended by themselves and may have left a child alive, as far back as they are known. */
const REMEMBERED = 100;
/** Pause between two questions to a silent Nomad. */
const AGAIN_MS = 500;

export interface RunnerBookDeps extends KillDeps {
  readonly pulse: Pulse;
  /** Aborts when the service stops: what waits for Nomad's return is left to the next start. */
  readonly stopSignal: AbortSignal;
}

/** What the book knows of an execution that holds a session in the runner. */
export interface BookedRun {
  readonly id: ExecutionId;
  readonly root: RunnerProcess | undefined;
}

/** What was found out of a runner before it was claimed. */
export interface KnownOfRunner {
  readonly user?: RunnerUser | undefined;
  readonly isSwept?: boolean;
}

/**
 * What goes on in one claimed runner: the executions that hold sessions there, who its user is, and whether processes
 * are left that belong to nobody.
 *
 * The one hard rule: processes of nobody are ended only while no execution holds a session, and none opens one until
 * that is done; a process that is just being started would look like one of them. Otherwise they make the runner
 * *dirty*, and the last execution that lets go has them ended.
 *
 * A runner in which something cannot be ended is given up. Where nobody could look because Nomad itself is silent, it is
 * ended once Nomad answers again; an outage costs no client its runner.
 */
export class RunnerBook {
  readonly runner: ClaimedRunner;
  /** Who unprivileged commands are; found out by the first one. */
  user: RunnerUser | undefined;
  /** A session was opened here, and with the first one what services that died have left was swept away. */
  isSwept: boolean;
  readonly #deps: RunnerBookDeps;
  readonly #log: Logger;
  readonly #runs = new Set<BookedRun>();
  #entries = 0;
  readonly #ended: ExecutionId[] = [];
  #dirty = false;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(deps: RunnerBookDeps, runner: ClaimedRunner, known: KnownOfRunner = {}) {
    this.#deps = deps;
    this.runner = runner;
    this.user = known.user;
    this.isSwept = known.isSwept ?? false;
    this.#log = deps.log.child({ runnerId: runner.id });
  }

  /** True while processes of nobody are known to live in the runner. */
  get dirty(): boolean {
    return this.#dirty;
  }

  /** True while nothing but one run has had a session here, so that the runner is as its image made it. */
  get untouched(): boolean {
    return this.#entries <= 1;
  }

  /**
   * Resolves once the run may open a session; from then on it counts. One of our own, which does nothing, leaves the runner
   * untouched.
   */
  async enter(run: BookedRun, isOwn = false): Promise<void> {
    for (let seen; seen !== this.#sweeping;) {
      seen = this.#sweeping;
      await seen;
    }
    this.#runs.add(run);
    if (!isOwn) this.#entries += 1;
  }

  /** The run ended by itself: what it left behind may live. */
  endedByItself(id: ExecutionId): void {
    this.#ended.push(id);
    if (this.#ended.length > REMEMBERED) this.#ended.shift();
  }

  /** Ends everything that a run started. Never rejects. */
  async end(run: BookedRun): Promise<void> {
    const alone = this.#runs.size === 1 && this.#runs.has(run);
    await this.#kill(run, alone);
  }

  /** Sends a signal to every process of a run. Rejects where it may not have reached all of them. */
  signal(run: BookedRun & { readonly privileged: boolean }, name: ProgramSignal): Promise<void> {
    const { id, root, privileged } = run;
    const toolStays = !privileged && this.user !== undefined && staysAsParent(this.user.tool);
    return sendSignal(this.#deps, this.runner, { target: { id, root }, name, toolStays });
  }

  /** The run holds no session any more. */
  async leave(run: BookedRun): Promise<void> {
    this.#runs.delete(run);
    if (this.#runs.size === 0 && this.#dirty) await this.#kill(undefined, true);
  }

  /**
   * The run ended by itself: what it left in its terminal gets SIGHUP, as when a terminal closes. True where nothing of it
   * lives then, nor anything that may be its. Never rejects.
   */
  async hangUp(run: BookedRun): Promise<boolean> {
    const others = [...this.#runs].filter((other) => other !== run);
    const ended = this.#ended.filter((id) => id !== run.id).map((id) => ({ id, root: undefined }));
    const result = await hangUpTree(this.#deps, this.runner, {
      target: run,
      others: [...others.map(({ id, root }) => ({ id, root })), ...ended],
      sweep: false,
    });
    return result !== undefined && result.left === 0 && result.nobody === 0;
  }

  async #kill(target: BookedRun | undefined, sweep: boolean): Promise<void> {
    const work = this.#killAndJudge(target, sweep);
    if (sweep) this.#sweeping = work;
    await work;
  }

  async #killAndJudge(target: BookedRun | undefined, sweep: boolean): Promise<void> {
    if (this.runner.runnerSignal.aborted) return;
    const others = [...this.#runs].filter((run) => run !== target);
    const ended = this.#ended.map((id) => ({ id, root: undefined }));
    const outcome = await killTree(this.#deps, this.runner, {
      target,
      others: [...others.map(({ id, root }) => ({ id, root })), ...ended],
      sweep,
    });
    if (outcome.kind === 'failed' && !(await this.#deps.pulse.answers())) {
      this.#log.warn('Nomad is silent, processes are ended once it answers', { outcome });
      if (await this.#nomadAnswers()) await this.#killAndJudge(target, sweep);
      return;
    }
    switch (outcome.kind) {
      case 'clean':
        this.#dirty = !sweep && (this.#dirty || outcome.nobody > 0);
        return;
      case 'gone':
        return;
      case 'survivors':
      case 'failed':
        if (this.runner.runnerSignal.aborted) return;
        this.#log.warn('processes could not be ended, the runner is given up', { outcome });
        this.runner.abandon('not-killable');
    }
  }

  /** Resolves with true once Nomad answers, and with false where it is of no interest any more. */
  async #nomadAnswers(): Promise<boolean> {
    const { clock, pulse, stopSignal } = this.#deps;
    const signal = AbortSignal.any([this.runner.runnerSignal, stopSignal]);
    do await clock.sleep(AGAIN_MS, signal);
    while (!signal.aborted && !(await pulse.answers()));
    return !signal.aborted;
  }
}
