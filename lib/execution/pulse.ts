import { deadline, orAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { hasCode } from '../base/errors.js';
import type { Nomad } from '../nomad/api.js';

/** Whether Nomad answers at all; what works in runners asks where a runner is silent. */
export interface Pulse {
  /** False where Nomad is silent or cannot be reached. Never rejects. */
  answers(): Promise<boolean>;
}

export interface NomadPulseDeps {
  readonly nomad: Pick<Nomad, 'leader'>;
  readonly clock: Clock;
}

/** A sign of life that takes longer is none. */
const SIGN_MS = 2_000;

/** Asks Nomad a question that costs nothing; one at a time, whoever wants to know. */
export class NomadPulse implements Pulse {
  readonly #deps: NomadPulseDeps;
  #asking: Promise<boolean> | undefined;

  constructor(deps: NomadPulseDeps) {
    this.#deps = deps;
  }

  answers(): Promise<boolean> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<boolean> {
    const { nomad, clock } = this.#deps;
    using limit = deadline(clock, SIGN_MS, 'NOMAD_UNREACHABLE', 'Nomad gave no sign of life in time');
    try {
      await orAbort(nomad.leader(limit.signal), limit.signal);
      return true;
    } catch (error) {
      // One that is overloaded or without a leader is there all the same.
      return !hasCode(error, 'NOMAD_UNREACHABLE');
    }
  }
}
