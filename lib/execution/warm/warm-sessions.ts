/**
 * Sessions that are opened in runners ahead of their commands, so that nobody waits for Nomad to open an exec.
 *
 * Each idle runner gets one session with a terminal and one for files (opening-queue.ts: in what order, at what pace). A
 * session is checked before it counts (opener.ts), and goes back to its place after a command that left everything
 * clean; else another one is opened. Whatever finds no session ready takes the cold path, which behaves the same.
 *
 * Invariants: a session is in one hand at a time; it belongs to one life of a task and ends with it; a session that is not
 * known to be clean is never used again.
 *
 * Not here: the places and their states (warm-runner.ts), what a clean session is (session.ts), the cold path
 * (cold-sessions.ts).
 */
import { ServiceError } from '../../base/errors.js';
import type { RunnerId } from '../../base/ids.js';
import type { Lifecycle, LifecycleState } from '../../base/lifecycle.js';
import { assertNew } from '../../base/lifecycle.js';
import type { ClaimedRunner, IdleRunner, PoolListener } from '../../runners/runner.js';
import { endSession } from '../cold-sessions.js';
import type { BookedRun, KnownOfRunner, RunnerBook } from '../runner-book.js';
import { newToken } from '../command.js';
import type { ScriptRun, ScriptRunner } from '../script-exec.js';
import { runScriptIn } from '../script-exec.js';
import type { CommandSession } from '../session.js';
import type { Release, SessionKind, SessionLease, SessionSource } from '../session-source.js';
import { settlesWithin } from '../within.js';
import type { OpenerDeps } from './opener.js';
import { Opener } from './opener.js';
import { OpeningQueue } from './opening-queue.js';
import type { Leased, Slot, WarmRunner } from './warm-runner.js';
import { createSlot, slotsOf, take } from './warm-runner.js';

export interface WarmSessionsDeps extends OpenerDeps {
  /** The way for whatever finds no session ready. */
  readonly cold: SessionSource;
}

/** How long a session waits until it is made ready for the next command as far as can be. */
const ARM_AFTER_MS = 20;
/** The same, in times that putting it in order took: arming costs a process, which a busy machine has no use for. */
const ARM_AFTER_SETTLES = 10;
const ARM_WITHIN_MS = 2000;
/** How long a command waits for the session that the one before has just left; opening another takes as long. */
const SETTLE_WAIT_MS = 100;

type Life = Pick<WarmRunner, 'id' | 'environment' | 'allocationId' | 'task' | 'signal'>;

export class WarmSessions implements SessionSource, ScriptRunner, PoolListener, Lifecycle {
  readonly #deps: WarmSessionsDeps;
  readonly #opener: Opener;
  readonly #queue: OpeningQueue;
  readonly #runners = new Map<RunnerId, WarmRunner>();
  readonly #stop = new AbortController();
  #came = 0;
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: WarmSessionsDeps) {
    const { warmParallel, maxSessions } = deps.config.execution;
    this.#deps = deps;
    this.#opener = new Opener(deps);
    this.#queue = new OpeningQueue({
      parallel: warmParallel,
      max: maxSessions,
      open: (runner, slot) => this.#open(runner, slot),
    });
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Sessions that are open or being opened, those in use included. */
  get count(): number {
    return this.#queue.count;
  }

  /** Sessions that wait for a command. */
  get idle(): number {
    return [...this.#runners.values()].flatMap(slotsOf).filter(({ place }) => place.name === 'idle').length;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- nothing to wait for, but a failure is a rejection
  async start(): Promise<void> {
    assertNew('warm sessions', this.#state);
    this.#state = 'running';
  }

  /** Ends every session that nobody uses, and opens none any more; those in use end when they are released. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  ready({ taskSignal, ...runner }: IdleRunner): void {
    this.#add({ ...runner, signal: taskSignal }, undefined);
  }

  /** What was found out of a runner so far. */
  known({ id, allocationId }: Pick<ClaimedRunner, 'id' | 'allocationId'>): KnownOfRunner {
    const known = this.#runners.get(id);
    return known?.allocationId === allocationId ? { user: known.user, isSwept: known.isSwept } : {};
  }

  async lease(book: RunnerBook, kind: SessionKind, signal: AbortSignal): Promise<SessionLease> {
    const runner = this.#inUse(book);
    const slot = kind === 'pipe' ? undefined : runner?.slots[kind];
    if (slot?.place.name === 'settling') {
      await settlesWithin(this.#deps.clock, SETTLE_WAIT_MS, slot.place.settled);
    }
    if (!runner || slot?.place.name !== 'idle') return this.#deps.cold.lease(book, kind, signal);
    const { session } = slot.place;
    take(slot);
    return { session, release: (how, run) => this.#release({ runner, slot, session }, how, run) };
  }

  runScript<T>(runner: ClaimedRunner, script: ScriptRun<T>): Promise<T> | undefined {
    const known = this.#runners.get(runner.id);
    const slot = known?.slots.files;
    if (known?.allocationId !== runner.allocationId || slot?.place.name !== 'idle') return undefined;
    const { session } = slot.place;
    take(slot);
    const running = runScriptIn(session, newToken(this.#deps.randomness), script);
    const leased = { runner: known, slot, session };
    void running.then(
      () => this.#release(leased, 'ended'),
      () => this.#release(leased, 'cut'),
    );
    return running;
  }

  /** Notes that a runner is in use. One that was so before the service started is heard of here. */
  #inUse(book: RunnerBook): WarmRunner | undefined {
    const { id, environment, allocationId, task, runnerSignal } = book.runner;
    const known = this.#runners.get(id);
    if (known?.allocationId !== allocationId) {
      return this.#add({ id, environment, allocationId, task, signal: runnerSignal }, book);
    }
    if (!known.book) {
      known.book = book;
      for (const slot of slotsOf(known)) this.#queue.prefer(slot, known);
    }
    return known;
  }

  #add({ id, environment, allocationId, task, signal }: Life, book: RunnerBook | undefined) {
    if (this.#state !== 'running' || signal.aborted) return undefined;
    const before = this.#runners.get(id);
    if (before) this.#drop(before);
    this.#came += 1;
    const random = (): number => this.#deps.randomness.random();
    const added: WarmRunner = {
      ...{ id, environment, allocationId, task, signal, book },
      number: this.#came,
      slots: { terminal: createSlot('terminal', random), files: createSlot('files', random) },
      user: undefined,
      isSwept: false,
    };
    this.#runners.set(id, added);
    signal.addEventListener('abort', () => this.#drop(added), { once: true });
    this.#queue.add(added.slots.terminal, added);
    return added;
  }

  /** The life of a task is over, and its sessions with it. */
  #drop(runner: WarmRunner): void {
    if (this.#runners.get(runner.id) === runner) this.#runners.delete(runner.id);
    for (const slot of slotsOf(runner)) {
      this.#queue.remove(slot);
      slot.timer?.cancel();
      if (slot.place.name !== 'idle') continue;
      slot.place.session.destroy();
      this.#vacate(slot);
    }
  }

  #isOver(runner: WarmRunner): boolean {
    return this.#state !== 'running' || this.#runners.get(runner.id) !== runner;
  }

  async #open(runner: WarmRunner, slot: Slot): Promise<void> {
    slot.place = { name: 'opening' };
    const signal = AbortSignal.any([runner.signal, this.#stop.signal]);
    const opened = await this.#opener.open(runner, slot, this.#came, signal);
    this.#openNextKind(runner, slot);
    if (opened.kind === 'session') {
      this.#keep(runner, slot, opened.session);
      return;
    }
    this.#vacate(slot);
    if (opened.kind === 'never') slot.place = { name: 'unused' };
    else this.#tryLater(runner, slot);
  }

  /** The second session of a runner comes after the first, which finds out who its user is. */
  #openNextKind(runner: WarmRunner, { kind }: Slot): void {
    const { files } = runner.slots;
    const isNext = kind === 'terminal' && files.place.name === 'empty' && files.timer === undefined;
    if (isNext && !this.#isOver(runner)) this.#queue.add(files, runner);
  }

  /** Puts a clean session in its place, and looks for another one when an exec of it ends. */
  #keep(runner: WarmRunner, slot: Slot, session: CommandSession): void {
    this.#putBack(runner, slot, session);
    void session.ended.then(() => {
      if (slot.place.name !== 'idle' || slot.place.session !== session) return;
      session.destroy();
      this.#vacate(slot);
      this.#tryLater(runner, slot);
    });
  }

  /**
   * One that waits for a while is armed; where commands follow each other that would only take time. `settleMs` is how
   * long it took to put it in order, which tells how busy the machine of the runner is.
   */
  #putBack(runner: WarmRunner, slot: Slot, session: CommandSession, settleMs = 0): void {
    const { clock, randomness, config } = this.#deps;
    slot.place = { name: 'idle', session };
    if (!session.arm) return;
    const delayMs = Math.min(Math.max(ARM_AFTER_MS, ARM_AFTER_SETTLES * settleMs), ARM_WITHIN_MS);
    slot.timer = clock.setTimer(delayMs, () => {
      slot.timer = undefined;
      const splitStderr = config.execution.interactiveStderr;
      if (runner.user) session.arm?.(newToken(randomness), { user: runner.user, splitStderr });
    });
  }

  #vacate(slot: Slot): void {
    slot.timer?.cancel();
    slot.timer = undefined;
    slot.place = { name: 'empty' };
    this.#queue.vacated();
  }

  #tryLater(runner: WarmRunner, slot: Slot): void {
    if (this.#isOver(runner)) return;
    slot.timer = this.#deps.clock.setTimer(slot.backoff.nextMs(), () => {
      slot.timer = undefined;
      this.#queue.add(slot, runner);
    });
  }

  /** Without a run, processes that it might have left are not looked for: such a session is not used again. */
  async #release(leased: Leased, how: Release, run?: BookedRun): Promise<void> {
    const { runner, slot, session } = leased;
    if (how === 'ended' && !this.#isOver(runner)) {
      const settled = this.#settle(leased, run);
      slot.place = { name: 'settling', settled };
      if (await settled) return;
    }
    await endSession(session, how === 'gone' || runner.signal.aborted);
    this.#vacate(slot);
    if (!this.#isOver(runner)) this.#queue.add(slot, runner);
  }

  /** Puts the session back in its place, and says so, where it can be used again. */
  async #settle(leased: Leased, run: BookedRun | undefined): Promise<boolean> {
    const { clock } = this.#deps;
    const { runner, slot, session } = leased;
    const sinceMs = clock.monotonicMs();
    if (!(await this.#isInOrder(leased, run)) || this.#isOver(runner)) return false;
    this.#putBack(runner, slot, session, clock.monotonicMs() - sinceMs);
    return true;
  }

  async #isInOrder({ runner, session }: Leased, run: BookedRun | undefined): Promise<boolean> {
    const verdict = await session.settle();
    if (verdict !== 'suspect' || !run || !runner.book) return verdict === 'clean';
    return (await runner.book.hangUp(run)) && (await session.settle()) === 'clean';
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    this.#stop.abort(new ServiceError('STOPPED', 'the service is stopping'));
    await this.#queue.stop();
    const idle = [...this.#runners.values()].flatMap(slotsOf).flatMap((slot) => {
      slot.timer?.cancel();
      return slot.place.name === 'idle' ? [{ slot, session: slot.place.session }] : [];
    });
    await Promise.all(
      idle.map(async ({ slot, session }) => {
        take(slot);
        await session.close();
        this.#vacate(slot);
      }),
    );
    this.#runners.clear();
    this.#state = 'stopped';
  }
}
