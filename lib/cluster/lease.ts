/**
 * The lease of who leads: a variable with a counter that its holder raises by check-and-set.
 *
 * The holder leads for LEAD_MS from the moment at which it *sent* its last raise that succeeded. Another takes the lease
 * where it is gone, or after it has seen the same index for SILENCE_MS, counted from the *answer* that showed it first;
 * the check-and-set fails where there was a raise in between. So, with clocks of one rate, the old holder has stopped
 * LEAD_MS after its raise, and the new one cannot have the lease until SILENCE_MS after that: never two lead.
 *
 * Whether a write whose answer got lost was done is found out by reading. It makes nobody lead.
 */
import type { Clock, Timer } from '../base/clock.js';
import { hasCode } from '../base/errors.js';
import type { ReplicaId } from '../base/ids.js';
import type { NomadVariables } from '../nomad/api.js';
import type { VariableRow } from '../nomad/model.js';
import { LEASE_PATH } from './paths.js';
import { BEAT_MS, LEAD_MS, SILENCE_MS } from './times.js';
import type { Look } from './watched-time.js';

export interface LeaseDeps {
  readonly id: ReplicaId;
  /** Tells this process from every other of its name. */
  readonly boot: string;
  readonly variables: NomadVariables;
  readonly clock: Clock;
  /** Called when the time of leading runs out. */
  readonly onLapse: () => void;
}

/** The lease as looks show it, and since when in watched time. */
interface Seen {
  /** 0 where there is none. */
  readonly modifyIndex: number;
  readonly sinceMs: number;
  readonly lastMs: number;
}

export class Lease {
  readonly #deps: LeaseDeps;
  /** The index of a raise or a take that succeeded; undefined while the lease is not known to be held by this process. */
  #held: number | undefined;
  /** True after a take whose answer got lost. */
  #isUncertain = false;
  #seen: Seen | undefined;
  #count = 0;
  #leadsUntilMs = -Infinity;
  /** When a lease that is held is to be raised. */
  #dueMs = -Infinity;
  #lapse: Timer | undefined;
  #isOver = false;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  get leads(): boolean {
    return this.#deps.clock.monotonicMs() < this.#leadsUntilMs;
  }

  /** Takes in what a look showed of the lease; undefined for none. */
  observe(row: VariableRow | undefined, { askedMs, answeredMs }: Look): void {
    const modifyIndex = row?.modifyIndex ?? 0;
    const isSame = this.#seen?.modifyIndex === modifyIndex;
    this.#seen = {
      modifyIndex,
      sinceMs: isSame && this.#seen ? this.#seen.sinceMs : answeredMs,
      lastMs: askedMs,
    };
  }

  /** Raises the lease where that is due, and takes it where it is nobody's. Rejects where Nomad fails. */
  async pursue(signal: AbortSignal): Promise<void> {
    if (this.#isUncertain) await this.#findOut(signal);
    else if (this.#held !== undefined && this.#deps.clock.monotonicMs() < this.#dueMs) return;
    const from = this.#held ?? this.#free();
    if (from === undefined || (await this.#write(from, signal))) return;
    // A raise whose answer got lost stands against the next one.
    await this.#findOut(signal);
    if (this.#held !== undefined) await this.#write(this.#held, signal);
  }

  /** Leads no more, from now on. `release` gives the lease to the others. */
  end(): void {
    this.#isOver = true;
    this.#leadUntil(-Infinity);
  }

  /** Removes the variable of a lease that is this process's; for after `end`, once nothing is under way. */
  async release(signal: AbortSignal): Promise<void> {
    await this.#findOut(signal);
    if (this.#held === undefined) return;
    await this.#deps.variables.remove(LEASE_PATH, { cas: this.#held, signal });
  }

  /** The index from which the lease may be taken, or undefined where it is somebody's. */
  #free(): number | undefined {
    const { modifyIndex, sinceMs, lastMs } = this.#seen ?? { modifyIndex: -1, sinceMs: 0, lastMs: 0 };
    if (modifyIndex === 0) return 0;
    return lastMs - sinceMs >= SILENCE_MS ? modifyIndex : undefined;
  }

  /** False where the lease has another index than `from`. */
  async #write(from: number, signal: AbortSignal): Promise<boolean> {
    const { id, boot, variables, clock } = this.#deps;
    this.#count += 1;
    const items = { holder: id, boot, count: String(this.#count) };
    const sentMs = clock.monotonicMs();
    try {
      const { modifyIndex } = await variables.put(LEASE_PATH, items, { cas: from, signal });
      this.#held = modifyIndex;
      this.#dueMs = sentMs + BEAT_MS;
      this.#leadUntil(sentMs + LEAD_MS);
      return true;
    } catch (error) {
      if (hasCode(error, 'NOMAD_CONFLICT')) return false;
      this.#isUncertain = true;
      throw error;
    }
  }

  /** Learns by reading whether the lease is this process's. */
  async #findOut(signal: AbortSignal): Promise<void> {
    const found = await this.#deps.variables.get(LEASE_PATH, signal);
    this.#isUncertain = false;
    this.#held = found?.items['boot'] === this.#deps.boot ? found.modifyIndex : undefined;
    if (this.#held === undefined) {
      this.#seen = undefined;
      this.#leadUntil(-Infinity);
    }
  }

  #leadUntil(untilMs: number): void {
    const { clock, onLapse } = this.#deps;
    this.#lapse?.cancel();
    this.#lapse = undefined;
    this.#leadsUntilMs = this.#isOver ? -Infinity : untilMs;
    const leftMs = this.#leadsUntilMs - clock.monotonicMs();
    if (leftMs > 0) this.#lapse = clock.setTimer(leftMs, onLapse);
  }
}
