import type { Timer } from '../../base/clock.js';
import type { AllocationId, RunnerId } from '../../base/ids.js';
import { Backoff } from '../../base/backoff.js';
import type { Environment } from '../../environments/environment.js';
import type { RunnerUser } from '../../shell/frames.js';
import type { RunnerBook } from '../runner-book.js';
import type { CommandSession } from '../session.js';

/** The kinds of session that are opened ahead, in the order in which a runner gets them. */
export const WARM_KINDS = ['terminal', 'files'] as const;
export type WarmKind = (typeof WARM_KINDS)[number];

/**
 * The place of one session in a runner.
 *
 *   empty ── its turn ──▶ opening ── checked ──▶ idle ── lease ──▶ leased ── ended ──▶ settling ── clean ──▶ idle
 *     ▲                      │                     │                 └── cut ──▶ empty      └── else ──▶ empty
 *     └── failed, tries later┴── an exec ended ────┘
 *
 * `unused` is a place that stays without a session: the image cannot have one.
 */
export type Place =
  | { readonly name: 'empty' }
  | { readonly name: 'opening' }
  | { readonly name: 'idle'; readonly session: CommandSession }
  | { readonly name: 'leased' }
  | { readonly name: 'settling'; readonly settled: Promise<boolean> }
  | { readonly name: 'unused' };

export interface Slot {
  readonly kind: WarmKind;
  readonly backoff: Backoff;
  place: Place;
  /** How often in a row it opened and did not answer as it has to. */
  wrong: number;
  /** How often it could run a single command. */
  singles: number;
  /** For the next attempt to open a session, or until one that waits is armed. */
  timer: Timer | undefined;
}

/** What is known of a runner in one life of its task. */
export interface WarmRunner {
  readonly id: RunnerId;
  readonly environment: Environment;
  readonly allocationId: AllocationId;
  readonly task: string;
  /** Aborts when this life is over. */
  readonly signal: AbortSignal;
  /** Order in which runners came. */
  readonly number: number;
  readonly slots: Readonly<Record<WarmKind, Slot>>;
  /** From the moment somebody uses the runner. */
  book: RunnerBook | undefined;
  user: RunnerUser | undefined;
  isSwept: boolean;
}

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;

/** `random` is uniform in [0, 1). */
export function createSlot(kind: WarmKind, random: () => number): Slot {
  const backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS, random });
  return { kind, backoff, place: { name: 'empty' }, wrong: 0, singles: 0, timer: undefined };
}

export function slotsOf({ slots }: WarmRunner): Slot[] {
  return WARM_KINDS.map((kind) => slots[kind]);
}

/** Takes the session out of its place, for whoever is going to use it. */
export function take(slot: Slot): void {
  slot.timer?.cancel();
  slot.timer = undefined;
  slot.place = { name: 'leased' };
}

/** A session in the hands of whoever runs a command in it, and the place to which it goes back. */
export interface Leased {
  readonly runner: WarmRunner;
  readonly slot: Slot;
  readonly session: CommandSession;
}
