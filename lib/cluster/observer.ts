/**
 * Looks at what the others keep in Nomad's Variables: one list for all of them and the lease, and the address of each that
 * is new or was read long ago.
 *
 * Nomad leaves out of a list what the token may not list, without a word. So a list is believed only where it shows this
 * replica's own variable, or, while Nomad has not taken that, any replica's.
 */
import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { ReplicaId } from '../base/ids.js';
import type { NomadVariables } from '../nomad/api.js';
import type { Lease } from './lease.js';
import type { Members } from './members.js';
import { LEASE_PATH, PREFIX, replicaOf, replicaPath } from './paths.js';
import type { Registration } from './registration.js';
import type { Look } from './watched-time.js';
import { WatchedTime } from './watched-time.js';

export interface ObserverDeps {
  readonly variables: NomadVariables;
  readonly clock: Clock;
  readonly members: Members;
  readonly lease: Lease;
  readonly registration: Registration;
}

export class Observer {
  readonly #deps: ObserverDeps;
  readonly #time = new WatchedTime();
  /** The look that has not begun. */
  #next: Promise<boolean> | undefined;
  /** The end of the one before it. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: ObserverDeps) {
    this.#deps = deps;
  }

  /**
   * Looks once, after the call and after the look that is under way: what is taken in is never older than what is known.
   * Those who ask before it begins share it, and the signal of the first. False where nothing can be told, since there is
   * nothing to see; rejects where Nomad fails, or does not show what is there. Nothing of such a list is taken in.
   */
  look(signal: AbortSignal): Promise<boolean> {
    if (this.#next) return this.#next;
    const next = this.#last.then(() => {
      this.#next = undefined;
      return this.#look(signal);
    });
    this.#next = next;
    this.#last = next.catch(() => undefined); // told to those who asked for it
    return next;
  }

  async #look(signal: AbortSignal): Promise<boolean> {
    const { variables, clock, members, lease, registration } = this.#deps;
    const { isHeld, path } = registration;
    members.beginLook();
    const askedAtMs = clock.monotonicMs();
    const rows = await variables.list(PREFIX, signal);
    if (isHeld && !rows.some((row) => row.path === path)) {
      throw new ServiceError(
        'NOMAD_NOT_FOUND',
        `the list of variables does not show ${path}, which is there`,
      );
    }
    if (!rows.some((row) => replicaOf(row.path) !== undefined)) return false;
    const look = this.#time.look(askedAtMs, clock.monotonicMs());
    members.observe(rows, look);
    lease.observe(
      rows.find((row) => row.path === LEASE_PATH),
      look,
    );
    await Promise.all(members.unread(look).map((id) => this.#read(id, look, signal)));
    return true;
  }

  async #read(id: ReplicaId, look: Look, signal: AbortSignal): Promise<void> {
    const found = await this.#deps.variables.get(replicaPath(id), signal);
    const { address, boot } = found?.items ?? {};
    this.#deps.members.introduce(id, { address: isAddress(address) ? address : undefined, boot }, look);
  }
}

/** Others may have written it: requests with the secret go there, so it is a base address and nothing else. */
function isAddress(text: string | undefined): text is string {
  return text !== undefined && /^https?:\/\/[^\s/?#@]+$/.test(text) && URL.canParse(text);
}
