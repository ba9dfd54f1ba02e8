/**
 * Requests for runners that another replica has: who that is, and the way there.
 *
 *   locate ──▶ own: served here
 *      ▲  └──▶ elsewhere: ask ──▶ answered, upgraded
 *      │                   └──── refused, lost before any body was sent, or not the owner (any more) ──┐
 *      └──────────── at most MAX_TRIES in all; a refused connection makes the owner count as dead ◀───┘
 *
 * A request that another replica passed on is never passed on again: it is served here, or answered that this is not the
 * owner. All of it has a time limit, but for the answer of routes that take as long as files need.
 *
 * Not here: one request (ask.ts), what travels afterwards (relay.ts, socket-relay.ts), who has which runner (runners/).
 */
import type { IncomingMessage } from 'node:http';
import { orAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';
import type { ReplicaId } from '../../base/ids.js';
import type { Logger } from '../../base/log.js';
import type { Cluster, Replica } from '../../cluster/api.js';
import type { Config } from '../../config/config.js';
import type { Runners } from '../../runners/api.js';
import { PublicUrl } from '../address/public-url.js';
import { contextOf } from '../context.js';
import type { Operation } from '../operations/operation.js';
import { AnswerLimit } from './answer-limit.js';
import type { Reply } from './ask.js';
import { ask } from './ask.js';
import type { HopSeal } from './hop.js';
import { FENCED, HOP_HEADER, NOT_OWNER } from './hop.js';
import { hasBody, requestHeaders } from './hop-headers.js';
import { OwnerAgents } from './owner-agents.js';
import { watchOwner } from './owner-watch.js';

/** The first, one after a takeover, and one more. */
const MAX_TRIES = 3;
/** What a mark is refused with. The client's own token was judged here, so it is never about that. */
const MARK_REFUSED = 401;
/** For an owner that counts as dead, until it is given up while nothing of its answer is there. */
const SILENCE_MS = 5000;

export interface ForwarderDeps {
  readonly runners: Pick<Runners, 'owns' | 'locate'>;
  readonly cluster: Cluster;
  readonly seal: HopSeal;
  readonly config: Pick<Config, 'server'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is passed on. */
export interface ForwardedRequest {
  readonly req: IncomingMessage;
  readonly operation: Operation;
  readonly isUpgrade: boolean;
}

/** An answer of the owner, and who that is. */
export type OwnersReply = Exclude<Reply, { kind: 'unheard' }> & { readonly owner: Replica };

export class Forwarder {
  readonly #deps: ForwarderDeps;
  readonly #agents = new OwnerAgents();
  readonly #publicUrl: PublicUrl;
  /** Those that refuse the marks of this one, of which the log tells once. */
  readonly #strangers = new Set<ReplicaId>();

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
    this.#publicUrl = new PublicUrl(deps.config.server);
  }

  /** Closes what is open towards other replicas. */
  destroy(): void {
    this.#agents.destroy();
  }

  /**
   * The answer of the replica that has the runner; undefined where that is this one, now at the latest.
   * OWNER_UNREACHABLE where no owner answers, and as `locate` rejects.
   */
  reach(runnerId: string, forwarded: ForwardedRequest): Promise<OwnersReply | undefined> {
    return this.#reach(`the replica that has runner ${runnerId.slice(0, 80)}`, forwarded, async (signal) => {
      const found = await this.#deps.runners.locate(runnerId, signal);
      return found.kind === 'own' ? undefined : found.owner;
    });
  }

  /**
   * The answer of the one other replica that can have an execution; undefined where there is none, so that the execution is
   * not either. OWNER_UNREACHABLE where it is and does not answer, and as `seek` rejects.
   */
  async reachReplica(id: ReplicaId, forwarded: ForwardedRequest): Promise<OwnersReply | undefined> {
    const { cluster } = this.#deps;
    if (id === cluster.self) return undefined;
    return this.#reach(`the replica ${id}`, forwarded, (signal) => cluster.seek(id, signal));
  }

  /** Asks whoever is found, again and again as long as nothing was carried out. */
  async #reach(
    whom: string,
    forwarded: ForwardedRequest,
    find: (signal: AbortSignal) => Promise<Replica | undefined>,
  ): Promise<OwnersReply | undefined> {
    const { cluster, clock } = this.#deps;
    using limit = new AnswerLimit(clock, `${whom} does not answer`);
    const signal = AbortSignal.any([contextOf(forwarded.req).requestSignal, limit.signal]);
    for (let tries = 1; ; tries += 1) {
      const owner = await orAbort(find(signal), signal);
      if (!owner) return undefined;
      const reply = await this.#ask(owner, forwarded, limit, signal);
      if (reply.kind !== 'unheard') return { ...reply, owner };
      if (reply.isRefused) cluster.suspect(owner.id);
      if (tries === MAX_TRIES) {
        throw new ServiceError('OWNER_UNREACHABLE', `${whom} does not answer at this moment; try again`);
      }
    }
  }

  async #ask(
    owner: Replica,
    forwarded: ForwardedRequest,
    limit: AnswerLimit,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { cluster, clock } = this.#deps;
    const { req, operation, isUpgrade } = forwarded;
    const address = new URL(owner.address);
    const context = contextOf(req);
    context.forwardedTo = owner.id;
    const body = hasBody(req) ? req : undefined;
    const isAnswerBounded = operation.isUnbounded !== true;
    const lost = new AbortController();
    const unwatch = watchOwner({
      cluster,
      owner: owner.id,
      clock,
      silenceMs: SILENCE_MS,
      connection: () => undefined,
      onDead: () => lost.abort(),
    });
    try {
      const reply = await ask({
        address,
        agents: this.#agents,
        method: req.method ?? '',
        target: req.url ?? '',
        headers: requestHeaders(req, { host: address.host, mark: this.#mark(req), isUpgrade }),
        body,
        clock,
        signal,
        lostSignal: lost.signal,
        progress: {
          continued: () => limit.clear(),
          sent: () => {
            if (!isAnswerBounded) limit.clear();
            else if (body) limit.arm();
          },
        },
      });
      if (reply.kind === 'unheard') return reply;
      this.#assertTaken(owner, reply);
      if (reply.kind !== 'answered' || reply.response.headers[HOP_HEADER] !== NOT_OWNER) return reply;
      reply.response.destroy();
      if (!reply.isBodySent) return { kind: 'unheard', isRefused: false };
      throw new ServiceError('OWNER_UNREACHABLE', 'another replica has the runner since this moment');
    } finally {
      unwatch();
    }
  }

  /** OWNER_UNREACHABLE where whoever was asked takes nothing from this replica: the client can do nothing about that. */
  #assertTaken({ id }: Replica, { kind, response }: Exclude<Reply, { kind: 'unheard' }>): void {
    if (response.headers[HOP_HEADER] === FENCED) {
      response.destroy();
      this.#deps.cluster.moved(id);
      throw new ServiceError('OWNER_UNREACHABLE', `the replica ${id} was started somewhere else; try again`, {
        retryAfterSeconds: 2,
      });
    }
    if (kind !== 'answered' || response.statusCode !== MARK_REFUSED) {
      this.#strangers.delete(id);
      return;
    }
    response.destroy();
    if (!this.#strangers.has(id)) {
      this.#strangers.add(id);
      this.#deps.log.error(
        'another replica refuses what this one passes on to it: they do not have the same cluster.secret',
        { replica: id },
      );
    }
    throw new ServiceError('OWNER_UNREACHABLE', `the replica ${id}, which has the runner, refuses this one`);
  }

  #mark(req: IncomingMessage): string {
    const { cluster, seal } = this.#deps;
    const { method = '', url = '' } = req;
    const { id, principal } = contextOf(req);
    const socketBase = this.#publicUrl.socketBase(req);
    return seal.mark(
      { from: cluster.self, requestId: id, tokenName: principal?.name, socketBase },
      { method, url },
    );
  }
}
