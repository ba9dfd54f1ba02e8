/**
 * The other replicas, from what looks at Nomad show of them: who lives, and where.
 *
 * One lives from the first look that shows it, while the index of its variable changes. It is dead after SILENCE_MS of
 * watched time without a change, at once where its variable is gone, and where a connection to it was refused: then the
 * first look after that only tells which heartbeats are old, and a change from there on, or another process, makes it
 * live again.
 *
 * Not here: requests (observer.ts), this replica itself (registration.ts). Nothing in here reads a clock.
 */
import type { ReplicaId } from '../base/ids.js';
import type { VariableRow } from '../nomad/model.js';
import type { Replica } from './api.js';
import { replicaOf } from './paths.js';
import { ADDRESS_MS, FORGET_MS, SILENCE_MS } from './times.js';
import type { Look } from './watched-time.js';

interface Member {
  readonly id: ReplicaId;
  readonly path: string;
  modifyIndex: number;
  /** Watched time of the last change. */
  changedMs: number;
  /** Watched time since when it was silent at the last look. */
  silentMs: number;
  suspicion: Suspicion | undefined;
  /** Where it is, and when that was read; undefined while that is not known. */
  address: { readonly text: string; readonly readMs: number } | undefined;
  /** Its process, as far as that was read. */
  boot: string | undefined;
}

/** What a replica says of itself. */
export interface Profile {
  /** Undefined where it says nothing that can be used. */
  readonly address: string | undefined;
  /** Tells its process from every other of its name. */
  readonly boot: string | undefined;
}

/** A connection was refused. */
interface Suspicion {
  /** True once a look has begun since then: one that was under way may show what was before. */
  isLookedAt: boolean;
  /** The index that is no sign of life, once a look has shown it. */
  since: number | undefined;
}

export class Members {
  readonly #self: ReplicaId;
  readonly #members = new Map<ReplicaId, Member>();

  constructor(self: ReplicaId) {
    this.#self = self;
  }

  /** To be told before a look is asked for. */
  beginLook(): void {
    for (const { suspicion } of this.#members.values()) if (suspicion) suspicion.isLookedAt = true;
  }

  /** Takes in all the rows that a look showed. */
  observe(rows: readonly VariableRow[], look: Look): void {
    const gone = new Set(this.#members.keys());
    for (const { path, modifyIndex } of rows) {
      const id = replicaOf(path);
      if (id === undefined || id === this.#self) continue;
      gone.delete(id);
      const member = this.#members.get(id);
      if (member) see(member, modifyIndex, look);
      else this.#members.set(id, newMember({ id, path, modifyIndex }, look));
    }
    for (const id of gone) this.#members.delete(id);
  }

  /**
   * Those whose variable is to be read: they give signs of life, and where they are is unknown, or was read long ago; or
   * they may be another process than the one that refused a connection.
   */
  unread({ answeredMs }: Look): readonly ReplicaId[] {
    const isOutdated = ({ address }: Member): boolean =>
      !address || answeredMs - address.readMs >= ADDRESS_MS;
    return [...this.#members.values()]
      .filter((member) => member.silentMs < SILENCE_MS && isOutdated(member))
      .map(({ id }) => id);
  }

  /** Takes in what a replica says of itself. */
  introduce(id: ReplicaId, { address, boot }: Profile, { answeredMs }: Look): void {
    const member = this.#members.get(id);
    if (!member) return;
    const isAnotherProcess = member.boot !== undefined && boot !== undefined && member.boot !== boot;
    if (isAnotherProcess && member.suspicion?.isLookedAt === true) member.suspicion = undefined;
    // One under suspicion is not believed, and is read again at the next look.
    if (member.suspicion) return;
    member.boot = boot;
    member.address = address === undefined ? undefined : { text: address, readMs: answeredMs };
  }

  /** A connection to it was refused. Its address is read again before it is believed again. */
  suspect(id: ReplicaId): void {
    const member = this.#members.get(id);
    if (!member) return;
    member.suspicion = { isLookedAt: false, since: undefined };
    member.address = undefined;
  }

  /** Its address is to be read again; until then it lives where it was. */
  moved(id: ReplicaId): void {
    const member = this.#members.get(id);
    if (member?.address) member.address = { ...member.address, readMs: -Infinity };
  }

  living(): Replica[] {
    return [...this.#members.values()].flatMap((member) => {
      const { id, address } = member;
      return address && isAlive(member) ? [{ id, address: address.text }] : [];
    });
  }

  /** Variables of those that have been dead for so long that nobody needs to know of them. */
  forgotten(): readonly VariableRow[] {
    return [...this.#members.values()].filter(({ silentMs }) => silentMs >= FORGET_MS);
  }
}

function newMember(row: Pick<Member, 'id' | 'path' | 'modifyIndex'>, { answeredMs }: Look): Member {
  return {
    ...row,
    changedMs: answeredMs,
    silentMs: 0,
    suspicion: undefined,
    address: undefined,
    boot: undefined,
  };
}

function see(member: Member, modifyIndex: number, { askedMs, answeredMs }: Look): void {
  const wasAlive = isAlive(member);
  const { suspicion } = member;
  if (suspicion?.isLookedAt) {
    suspicion.since ??= modifyIndex;
    if (suspicion.since !== modifyIndex) member.suspicion = undefined;
  }
  if (member.modifyIndex !== modifyIndex) {
    member.modifyIndex = modifyIndex;
    member.changedMs = answeredMs;
  }
  member.silentMs = askedMs - member.changedMs;
  // Who comes back from the dead may be somewhere else.
  if (!wasAlive && isAlive(member)) member.address = undefined;
}

function isAlive({ suspicion, silentMs }: Member): boolean {
  return !suspicion && silentMs < SILENCE_MS;
}
