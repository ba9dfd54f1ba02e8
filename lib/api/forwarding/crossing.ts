import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import { replicaOfExecution } from '../../base/ids.js';
import type { Runners } from '../../runners/api.js';
import { contextOf } from '../context.js';
import type { Operation } from '../operations/operation.js';
import { openSocket } from '../operations/runners.js';
import type { ForwardedRequest, Forwarder, OwnersReply } from './forwarder.js';
import { HOP_HEADER, NOT_OWNER } from './hop.js';
import { relayAnswer } from './relay.js';

/** Whether requests for a runner are served here, and how they cross over to where they are. */
export class Crossing {
  readonly #runners: Pick<Runners, 'owns'>;
  readonly #forwarder: Forwarder | undefined;

  /** Without a forwarder everything is here. */
  constructor(runners: Pick<Runners, 'owns'>, forwarder: Forwarder | undefined) {
    this.#runners = runners;
    this.#forwarder = forwarder;
  }

  /** Costs nothing; where it is false, the others are asked. */
  isHere(runnerId: string): boolean {
    return this.#forwarder === undefined || this.#runners.owns(runnerId);
  }

  /**
   * The owner's reply to a request for a runner that is not here; undefined where it has become one for this replica. What
   * another replica passed on goes no further: OWNER_UNREACHABLE, with a sign for that one.
   */
  async reach(
    runnerId: string,
    forwarded: ForwardedRequest,
    res: ServerResponse,
  ): Promise<OwnersReply | undefined> {
    if (!contextOf(forwarded.req).hop) return await this.#forwarder?.reach(runnerId, forwarded);
    res.setHeader(HOP_HEADER, NOT_OWNER);
    throw new ServiceError(
      'OWNER_UNREACHABLE',
      `runner ${runnerId.slice(0, 80)} is not with the replica that was asked; try again`,
    );
  }

  /** As `reach`, for a WebSocket. That of an execution is with the replica that its id names, or nowhere. */
  async open(
    runnerId: string,
    operation: Operation,
    req: IncomingMessage,
    res: ServerResponse,
  ): Promise<OwnersReply | undefined> {
    const forwarded = { req, operation, isUpgrade: true };
    const named =
      operation === openSocket ? replicaOfExecution(openSocket.parseQuery(req).executionID) : undefined;
    if (named === undefined || !this.#forwarder) return await this.reach(runnerId, forwarded, res);
    const reply = contextOf(req).hop ? undefined : await this.#forwarder.reachReplica(named, forwarded);
    if (reply) return reply;
    throw new ServiceError(
      'EXECUTION_NOT_FOUND',
      `there is no such execution of runner ${runnerId.slice(0, 80)} any more`,
    );
  }

  /** Answers a request with what its owner answers. False where it is to be served here. */
  async answer(
    runnerId: string,
    operation: Operation,
    req: IncomingMessage,
    res: ServerResponse,
  ): Promise<boolean> {
    const reply = await this.reach(runnerId, { req, operation, isUpgrade: false }, res);
    if (!reply) return false;
    if (reply.kind === 'upgraded') {
      reply.connection.destroy();
      throw new ServiceError('OWNER_UNREACHABLE', 'the owner of the runner took a request for an upgrade');
    }
    await relayAnswer(reply.response, res);
    return true;
  }
}
