/**
 * This replica's own variable: a name that it holds, and a heartbeat.
 *
 * Every write is a check-and-set on the index of the last one, so whoever wrote in between is noticed. `boot` tells the
 * processes of one name apart: the one that starts later takes the name, whether or not the earlier one still runs, and
 * that one learns it at its next heartbeat. An answer that got lost shows as a conflict with oneself.
 */
import type { ReplicaId } from '../base/ids.js';
import { hasCode, ServiceError } from '../base/errors.js';
import type { NomadVariables } from '../nomad/api.js';
import { replicaPath } from './paths.js';

export interface RegistrationDeps {
  readonly id: ReplicaId;
  /** Tells this process from every other of its name. */
  readonly boot: string;
  /** Where the others reach this one; asked at each heartbeat. */
  readonly address: () => string;
  readonly variables: NomadVariables;
}

/** Conflicts in a row that one heartbeat puts up with. */
const ATTEMPTS = 3;

export class Registration {
  readonly path: string;
  readonly #deps: RegistrationDeps;
  #modifyIndex = 0;
  #beats = 0;
  #isHeld = false;
  #isRefused = false;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
    this.path = replicaPath(deps.id);
  }

  /** True from the first heartbeat that Nomad took. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** True while Nomad takes no heartbeat from this one, so that the others cannot know of it. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Takes the name, or goes on to hold it. `taken` where another process has it now. */
  async beat(signal: AbortSignal): Promise<'held' | 'taken'> {
    const { id, boot, address, variables } = this.#deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      this.#beats += 1;
      const items = { address: address(), boot, beat: String(this.#beats) };
      try {
        const { modifyIndex } = await variables.put(this.path, items, { cas: this.#modifyIndex, signal });
        this.#modifyIndex = modifyIndex;
        this.#isHeld = true;
        this.#isRefused = false;
        return 'held';
      } catch (error) {
        if (!hasCode(error, 'NOMAD_CONFLICT')) {
          this.#isRefused = hasCode(error, 'NOMAD_REFUSED');
          throw error;
        }
      }
      const found = await variables.get(this.path, signal);
      if (this.#isHeld && found && found.items['boot'] !== boot) return 'taken';
      this.#modifyIndex = found?.modifyIndex ?? 0;
    }
    throw new ServiceError('NOMAD_CONFLICT', `the name ${id} is taken by others again and again`);
  }

  /** Removes the variable, unless it is another process's by now. */
  async leave(signal: AbortSignal): Promise<void> {
    const { boot, variables } = this.#deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const found = await variables.get(this.path, signal);
      if (found?.items['boot'] !== boot) return;
      try {
        await variables.remove(this.path, { cas: found.modifyIndex, signal });
        return;
      } catch (error) {
        if (!hasCode(error, 'NOMAD_CONFLICT')) throw error; // a late heartbeat of one's own
      }
    }
  }
}
