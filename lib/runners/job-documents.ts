import type { RunnerId } from '../base/ids.js';
import type { WireJob } from '../nomad/wire.js';
import { readRunnerJob } from './job.js';
import type { Changes } from './state.js';

/** A job takes some kilobytes; the pools of most services fit. */
const MAX_KEPT = 500;

/**
 * The jobs of unclaimed runners as Nomad's events showed them, so that a claim can write one back without reading it
 * first. One that is not here, or no longer what Nomad has, costs its claim that reading and nothing more: the write
 * names the index of the job it changes.
 */
export class JobDocuments {
  readonly #kept = new Map<RunnerId, WireJob>();

  /** Keeps the job of an unclaimed runner; any other job is let be. */
  note(job: WireJob): void {
    const says = readRunnerJob(job);
    if (!says) return;
    const known = this.#kept.get(says.id);
    if (says.used || says.stopped) this.#kept.delete(says.id);
    else if (known ? indexOf(job) >= indexOf(known) : this.#kept.size < MAX_KEPT)
      this.#kept.set(says.id, job);
  }

  /** The job of a runner that is being claimed; it is kept no longer. */
  take(id: RunnerId): WireJob | undefined {
    const job = this.#kept.get(id);
    this.#kept.delete(id);
    return job;
  }

  /** Forgets what can be claimed no more. */
  follow(changes: Changes): void {
    for (const [id, runner] of changes.members) {
      const name = runner?.phase.name;
      if (name !== 'starting' && name !== 'idle' && name !== 'claiming') this.#kept.delete(id);
    }
  }
}

function indexOf(job: WireJob): number {
  return job.JobModifyIndex ?? 0;
}
