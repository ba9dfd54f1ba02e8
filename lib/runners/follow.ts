import { setMaxListeners } from 'node:events';
import { orAbort } from '../base/abort.js';
import { Backoff } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { hasCode, messageOf, ServiceError } from '../base/errors.js';
import type { Randomness } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { EventTopic, Nomad } from '../nomad/api.js';
import type { NomadEvent } from '../nomad/model.js';
import type { Listing } from './observation.js';

export interface FollowerDeps {
  readonly nomad: Pick<Nomad, 'events' | 'leader'>;
  readonly clock: Clock;
  readonly randomness: Pick<Randomness, 'random'>;
  readonly log: Logger;
  readonly reconcileIntervalMs: number;
  readonly read: (signal: AbortSignal) => Promise<Listing>;
  readonly onListing: (listing: Listing) => void;
  readonly onEvent: (event: NomadEvent) => void;
  readonly onUnreachable: () => void;
}

const TOPICS: readonly EventTopic[] = ['Allocation', 'Evaluation', 'Job', 'Node'];
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** A session that lived this long was a good one: the next failure begins with a short pause again. */
const GOOD_SESSION_MS = 60_000;
/** Silence of the events after which Nomad is asked for a sign of life. */
const CHECK_INTERVAL_MS = 5_000;
/** An answer that takes longer is news: Nomad may be frozen with all its sockets open. */
const ANSWER_MS = 3_000;

/**
 * Follows Nomad for as long as the service runs.
 *
 *   connect ─▶ subscribe ─▶ list (events wait) ─▶ follow, listing again now and then ─▶ any failure: pause ─▶ connect
 *
 * Subscribing comes before listing, so what happens in between is told twice rather than never. Whatever ends the
 * stream, the next session lists everything again, since a gap cannot be seen. One line is logged for each outage.
 *
 * A server that is frozen closes nothing, and heartbeats are far apart. So while no events arrive Nomad is asked a cheap
 * question, and counts as out of reach as soon as the answer is late; the session goes on if it comes after all.
 */
export class Follower {
  readonly #deps: FollowerDeps;
  readonly #backoff: Backoff;
  #following = false;
  /** Monotonic time of the last event. */
  #heardAt = 0;
  #outage: { readonly since: number } | undefined;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#backoff = new Backoff({
      minMs: RETRY_MIN_MS,
      maxMs: RETRY_MAX_MS,
      random: () => deps.randomness.random(),
    });
  }

  /** True while everything was listed, events arrive and Nomad answers. */
  get following(): boolean {
    return this.#following;
  }

  /** Runs until `signal` aborts; rejects never. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const since = clock.monotonicMs();
      let isAway = false;
      try {
        await this.#session(signal);
      } catch (error) {
        if (signal.aborted) break;
        this.#lost(error);
        isAway = hasCode(error, 'NOMAD_UNREACHABLE', 'NOMAD_OVERLOADED');
      }
      if (clock.monotonicMs() - since >= GOOD_SESSION_MS) this.#backoff.reset();
      await this.#pause(isAway, signal);
    }
    this.#following = false;
  }

  /** After a failure. Where Nomad was away, the pause is over as soon as it answers a cheap question. */
  async #pause(isAway: boolean, signal: AbortSignal): Promise<void> {
    const { clock, nomad } = this.#deps;
    const endMs = clock.monotonicMs() + this.#backoff.nextMs();
    for (;;) {
      const leftMs = Math.max(0, endMs - clock.monotonicMs());
      await clock.sleep(isAway ? Math.min(leftMs, CHECK_INTERVAL_MS) : leftMs, signal);
      if (clock.monotonicMs() >= endMs || signal.aborted) return;
      const answers = await orAbort(nomad.leader(signal), signal).then(
        () => true,
        () => false,
      );
      if (answers) return;
    }
  }

  /** One connection, from the subscription to whatever ends it. Always throws, unless `signal` aborts. */
  async #session(signal: AbortSignal): Promise<void> {
    const { clock, nomad, read, onListing, onEvent } = this.#deps;
    const ending = new AbortController();
    const sessionSignal = AbortSignal.any([signal, ending.signal]);
    setMaxListeners(0, sessionSignal); // a listing asks for much at once
    const subscription = nomad.events.subscribe({ topics: TOPICS, signal: sessionSignal });
    let waiting: NomadEvent[] | undefined = [];
    const pump = async (): Promise<never> => {
      for await (const batch of subscription) {
        this.#heardAt = clock.monotonicMs();
        if (waiting) waiting.push(...batch);
        else batch.forEach(onEvent);
      }
      throw new ServiceError('NOMAD_UNREACHABLE', 'the event stream ended');
    };
    const pumping = pump();
    // Ends with the pump: the first listing and everything after it are worth nothing without events.
    const unlessBroken = <T>(work: Promise<T>): Promise<T> => Promise.race([work, pumping]);
    try {
      await unlessBroken(orAbort(subscription.opened, sessionSignal));
      onListing(await unlessBroken(read(sessionSignal)));
      const early = waiting;
      waiting = undefined;
      early.forEach(onEvent);
      this.#found();
      await unlessBroken(this.#keepUp(sessionSignal));
    } finally {
      ending.abort(new ServiceError('STOPPED', 'the session with Nomad ended'));
      await pumping.catch(() => undefined); // told already, or brought about just now
    }
  }

  /** What no event told is found by listing again; that Nomad still answers, by a cheap question in between. */
  async #keepUp(signal: AbortSignal): Promise<void> {
    const { clock, read, onListing, reconcileIntervalMs } = this.#deps;
    let listAt = clock.monotonicMs() + reconcileIntervalMs;
    while (!signal.aborted) {
      const now = clock.monotonicMs();
      await clock.sleep(Math.min(CHECK_INTERVAL_MS, Math.max(0, listAt - now)), signal);
      if (signal.aborted) return;
      if (clock.monotonicMs() >= listAt) {
        onListing(await read(signal));
        listAt = clock.monotonicMs() + reconcileIntervalMs;
      } else if (clock.monotonicMs() - this.#heardAt >= CHECK_INTERVAL_MS) {
        await this.#check(signal);
      }
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { clock, nomad } = this.#deps;
    const late = clock.setTimer(ANSWER_MS, () => this.#missed());
    try {
      await orAbort(nomad.leader(signal), signal);
    } finally {
      late.cancel();
    }
    this.#found();
  }

  #found(): void {
    const { log, clock } = this.#deps;
    this.#following = true;
    if (!this.#outage) return;
    log.info('Nomad can be reached again', {
      afterSeconds: Math.round((clock.monotonicMs() - this.#outage.since) / 1000),
    });
    this.#outage = undefined;
  }

  #missed(): void {
    const { log, clock } = this.#deps;
    this.#following = false;
    log.warn('Nomad does not answer, waiting for it', { seconds: ANSWER_MS / 1000 });
    this.#outage = { since: clock.monotonicMs() };
  }

  #lost(error: unknown): void {
    const { log, clock, onUnreachable } = this.#deps;
    this.#following = false;
    if (this.#outage) log.debug('Nomad is still out of reach', { reason: messageOf(error) });
    else log.warn('Nomad cannot be followed, trying again until it can', { error });
    this.#outage ??= { since: clock.monotonicMs() };
    onUnreachable();
  }
}
