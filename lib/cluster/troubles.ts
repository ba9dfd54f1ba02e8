import type { Clock } from '../base/clock.js';
import { hasCode, messageOf, ServiceError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { LEAD_MS } from './times.js';

/** What a replica does with variables; each fails by itself. */
export type Duty = 'heartbeat' | 'others' | 'lease' | 'removal';

const DUTIES: Readonly<Record<Duty, string>> = {
  heartbeat: 'cannot tell the other services that it lives',
  others: 'cannot see the other services',
  lease: 'cannot take its turn to lead',
  removal: 'cannot remove entries of services that are gone',
};

const ACL =
  'variables { path "serai/*" { capabilities = ["list", "read", "write", "destroy"] } } in the policy of its namespace';

interface Trouble {
  readonly sinceMs: number;
  readonly sentence: string;
  /** Not a matter of time: Nomad has said no. */
  readonly isDefinite: boolean;
}

/** What keeps a replica from its duties: logged once each time it begins and ends, told as long as it lasts. */
export class Troubles {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #troubles = new Map<Duty, Trouble>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** A sentence for the operator; undefined while all is well, or fails for a moment only. */
  get sentence(): string | undefined {
    const nowMs = this.#clock.monotonicMs();
    const lasting = [...this.#troubles].find(
      ([duty, { sinceMs, isDefinite }]) => duty !== 'removal' && (isDefinite || nowMs - sinceMs >= LEAD_MS),
    );
    return lasting?.[1].sentence;
  }

  failed(duty: Duty, error: unknown): void {
    const before = this.#troubles.get(duty);
    const capability = missingCapability(error);
    const advice = capability === undefined ? '' : `; its token lacks "${capability}" of ${ACL}`;
    const sentence = `this service ${DUTIES[duty]}: ${messageOf(error)}${advice}`;
    const sinceMs = before?.sinceMs ?? this.#clock.monotonicMs();
    const isDefinite = hasCode(error, 'NOMAD_REFUSED');
    this.#troubles.set(duty, { sinceMs, sentence, isDefinite });
    if (!before || (isDefinite && !before.isDefinite)) this.#log.warn(sentence, { error });
  }

  succeeded(duty: Duty): void {
    const before = this.#troubles.get(duty);
    if (!before) return;
    this.#troubles.delete(duty);
    const lastedMs = Math.round(this.#clock.monotonicMs() - before.sinceMs);
    this.#log.info('this service takes its part among the others again', { duty, lastedMs });
  }
}

/** The capability without which Nomad's ACL refuses what failed; undefined where it is no matter of that. */
function missingCapability(error: unknown): string | undefined {
  // A list that lacks what was written is how Nomad refuses to list.
  if (hasCode(error, 'NOMAD_NOT_FOUND')) return 'list';
  if (!hasCode(error, 'NOMAD_REFUSED') || !(error instanceof ServiceError)) return undefined;
  const { method, path } = error.details;
  if (method === 'PUT') return 'write';
  if (method === 'DELETE') return 'destroy';
  return path === '/v1/vars' ? 'list' : 'read';
}
