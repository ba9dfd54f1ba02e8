import type { Clock } from '../../base/clock.js';
import { messageOf } from '../../base/errors.js';
import type { Randomness } from '../../base/ids.js';
import type { Slots } from '../../base/slots.js';
import type { TaskDriver, TaskExit, TaskHandle, TaskOptions } from '../driver.js';
import type { JobType, Task, TaskEvent, TaskState } from '../state/records.js';
import type { Timestamps } from '../time.js';
import { nsToMs } from '../time.js';
import { RestartTracker } from './restarts.js';
import * as events from './task-events.js';

/**
 * The life of one task: started, restarted by its policy or on request, until it is killed or may not start again.
 *
 *   pending ── started ──▶ running ── ended ──▶ pending ── …        (restart)
 *      └───── not started ─────┴────────────▶ dead
 *
 * It tells of every change of its state. `urgent` is false for what a real client would not hurry to report, because
 * the next change usually comes at once.
 */
export interface TaskRunnerDeps {
  readonly clock: Clock;
  readonly timestamps: Timestamps;
  readonly randomness: Randomness;
  readonly driver: TaskDriver;
  /** Starts that may be under way at once. */
  readonly starts: Slots;
  readonly startDelayMs: number;
}

export interface TaskRunnerOptions {
  readonly task: Task;
  readonly jobType: JobType;
  /** What the driver is asked to start; undefined where the job names no command. */
  readonly start: TaskOptions | undefined;
  /** Resolves when the allocation that this one replaces has ended. Never rejects. */
  readonly ready: Promise<void>;
  /** Makes what the task needs before it is started, every time. */
  readonly prepare: () => Promise<void>;
  readonly onChange: (state: TaskState, urgent: boolean) => void;
}

/** An exec that is open in the task, to be told when the task is stopped under it. */
export interface OpenExec {
  /** Ends the exec because the task is being stopped. */
  shutDown(): void;
}

/** Nomad keeps this many events of a task. */
const EVENTS_KEPT = 10;

export class TaskRunner {
  readonly #deps: TaskRunnerDeps;
  readonly #options: TaskRunnerOptions;
  readonly #restarts: RestartTracker;
  readonly #kill = new AbortController();
  readonly #execs = new Set<OpenExec>();
  #handle: TaskHandle | undefined;
  #restartRequested = false;
  #oomRehearsed = false;
  #state: TaskState = {
    State: 'pending',
    Failed: false,
    Restarts: 0,
    LastRestart: null,
    StartedAt: null,
    FinishedAt: null,
    Events: [],
    TaskHandle: null,
  };

  constructor(deps: TaskRunnerDeps, options: TaskRunnerOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#restarts = new RestartTracker(options.task.RestartPolicy, options.jobType, deps.randomness);
  }

  get state(): TaskState {
    return this.#state;
  }

  /** The running task; undefined while there is none. */
  get handle(): TaskHandle | undefined {
    return this.#kill.signal.aborted ? undefined : this.#handle;
  }

  /** Runs the task to its end; resolves when nothing of it is left. Never rejects. */
  async run(): Promise<void> {
    this.#change({}, false, events.received(this.#now()));
    await orKilled(this.#options.ready, this.#kill.signal);
    if (!this.#isKilled) this.#change({}, false, events.taskSetup(this.#now()));
    while (!this.#isKilled) {
      const exit = await this.#runOnce();
      if (this.#isKilled) break;
      const delayNs = this.#afterwards(exit);
      if (delayNs === undefined) return;
      await this.#deps.clock.sleep(nsToMs(delayNs), this.#kill.signal);
    }
    const { rfc3339 } = this.#now();
    const wasStarted = this.#state.StartedAt !== null;
    const killed = wasStarted ? [events.killed(this.#now())] : [];
    this.#change({ State: 'dead', FinishedAt: rfc3339 }, true, ...killed);
  }

  /** Ends the task for good. `run` resolves when that is done. */
  stop(reason?: TaskEvent): void {
    if (this.#isKilled || this.#state.State === 'dead') return;
    const { KillTimeout } = this.#options.task;
    this.#change({}, false, ...(reason ? [reason] : []), events.killing(this.#now(), KillTimeout));
    this.#kill.abort();
    for (const exec of this.#execs) exec.shutDown();
    void this.#handle?.kill();
  }

  /** Ends the main process and lets it be started again, outside the restart policy. */
  async restart(): Promise<boolean> {
    const handle = this.handle;
    if (!handle) return false;
    this.#restartRequested = true;
    this.#change({}, true, events.restartSignaled(this.#now()));
    await handle.kill();
    return true;
  }

  /** Ends the main process as if it had died. */
  async die({ oomKilled }: { oomKilled: boolean }): Promise<boolean> {
    const handle = this.handle;
    if (!handle) return false;
    this.#oomRehearsed = oomKilled;
    await handle.kill();
    return true;
  }

  /** Remembers an open exec until the returned function is called. */
  addExec(exec: OpenExec): () => void {
    this.#execs.add(exec);
    return () => void this.#execs.delete(exec);
  }

  get #isKilled(): boolean {
    return this.#kill.signal.aborted;
  }

  /** Starts the task and waits for its end. Undefined where it could not be started, or was killed before it ran. */
  async #runOnce(): Promise<TaskExit | undefined> {
    const { signal } = this.#kill;
    let handle: TaskHandle | undefined;
    try {
      handle = await this.#deps.starts.with(() => this.#start(signal), signal);
    } catch (error) {
      if (!this.#isKilled) {
        const text = `failed to launch command with executor: rpc error: code = Unknown desc = ${messageOf(error)}`;
        this.#change({}, false, events.driverFailure(this.#now(), text));
      }
      return undefined;
    }
    if (!handle) return undefined;
    this.#handle = handle;
    if (!this.#isKilled) {
      const now = this.#now();
      this.#change({ State: 'running', StartedAt: now.rfc3339 }, true, events.started(now));
    } else void handle.kill();
    const exit = await handle.exited;
    // A container ends with its main process: what that left behind goes too.
    await handle.kill();
    this.#handle = undefined;
    const seen = this.#oomRehearsed ? { exitCode: 137, signal: 0, oomKilled: true } : exit;
    this.#oomRehearsed = false;
    this.#change({}, false, events.terminated(this.#now(), seen));
    return seen;
  }

  async #start(signal: AbortSignal): Promise<TaskHandle | undefined> {
    const { clock, driver, startDelayMs } = this.#deps;
    const { start, prepare } = this.#options;
    if (!start) {
      throw new Error(
        'the task names no command, and the embedded agent has no images whose own it could run',
      );
    }
    if (startDelayMs > 0) await clock.sleep(startDelayMs, signal);
    if (signal.aborted) return undefined;
    await prepare();
    return driver.startTask(start);
  }

  /** Decides what follows an end that nobody stopped: nanoseconds until the next start, or undefined for the last end. */
  #afterwards(exit: TaskExit | undefined): number | undefined {
    const now = this.#now();
    const again = {
      State: 'pending' as const,
      Restarts: this.#state.Restarts + 1,
      LastRestart: now.rfc3339,
    };
    if (this.#restartRequested) {
      this.#restartRequested = false;
      this.#change(again, false, events.restarting(now, '', 0));
      return 0;
    }
    const decision = this.#restarts.decide(exit, now.ns);
    switch (decision.kind) {
      case 'restart':
        this.#change(again, true, events.restarting(now, decision.reason, decision.delayNs));
        return decision.delayNs;
      case 'fail':
        this.#change(
          { State: 'dead', Failed: true, FinishedAt: now.rfc3339 },
          true,
          events.notRestarting(now, decision.reason),
        );
        return undefined;
      case 'complete':
        this.#change({ State: 'dead', FinishedAt: now.rfc3339 }, true);
        return undefined;
    }
  }

  #now(): ReturnType<Timestamps['now']> {
    return this.#deps.timestamps.now();
  }

  #change(change: Partial<TaskState>, urgent: boolean, ...added: TaskEvent[]): void {
    const Events = [...this.#state.Events, ...added].slice(-EVENTS_KEPT);
    this.#state = { ...this.#state, ...change, Events };
    this.#options.onChange(this.#state, urgent);
  }
}

/** Waits for `promise`, or for the signal. */
function orKilled(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    else void promise.then(end);
  });
}
