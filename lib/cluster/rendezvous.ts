import type { ReplicaId } from '../base/ids.js';

/**
 * Rendezvous hashing: of those that live, a name goes to the one with the highest score for it. Where one comes or goes,
 * only the names that it gets or had change their place.
 *
 * Replicas agree only as long as they compute the same, so the functions below are part of what they share: a name's
 * text by FNV-1a, and the scores by the last step of MurmurHash3, both over 32 bits. That is some tens of nanoseconds for
 * a name, since all of them are placed anew with each change.
 */
export class Rendezvous {
  readonly #ids: readonly ReplicaId[];
  readonly #hashes: readonly number[];

  /** `ids` in any order. */
  constructor(ids: readonly ReplicaId[]) {
    this.#ids = [...ids].sort();
    this.#hashes = this.#ids.map(hashOf);
  }

  /** Undefined where nobody is there. */
  assignee(name: string): ReplicaId | undefined {
    const hash = hashOf(name);
    let chosen: ReplicaId | undefined;
    let highest = -1;
    this.#ids.forEach((id, index) => {
      const score = mixed(hash ^ (this.#hashes[index] ?? 0));
      if (score <= highest) return;
      highest = score;
      chosen = id;
    });
    return chosen;
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mixed(hash);
}

/** Every bit of the result depends on every bit of the number. */
function mixed(number: number): number {
  let hash = number ^ (number >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
