import { ServiceError } from '../base/errors.js';
import { Allocations } from './allocations.js';
import type {
  ExecOptions,
  ExecSession,
  Nomad,
  NomadAllocations,
  NomadEvaluations,
  NomadEvents,
  NomadJobs,
  NomadNodes,
  NomadVariables,
} from './api.js';
import { Connection } from './connection.js';
import type { NomadClientConfig, NomadClientDeps } from './connection.js';
import { protocolError } from './errors.js';
import { Evaluations } from './evaluations.js';
import { Events } from './events.js';
import { openExec } from './exec.js';
import type { WebSocketExecSession } from './exec-session.js';
import { Http } from './http.js';
import { Jobs } from './jobs.js';
import { Nodes } from './nodes.js';
import { Variables } from './variables.js';

/**
 * Nomad over its HTTP API: composes the resources over one connection.
 *
 * Usable from construction on; nothing is opened before the first call. `stop()` ends what is under way with STOPPED,
 * drops open exec sockets and closes kept connections.
 */
export class NomadClient implements Nomad, AsyncDisposable {
  readonly jobs: NomadJobs;
  readonly evaluations: NomadEvaluations;
  readonly allocations: NomadAllocations;
  readonly nodes: NomadNodes;
  readonly variables: NomadVariables;
  readonly events: NomadEvents;
  readonly #connection: Connection;
  readonly #http: Http;
  readonly #execs = new Set<WebSocketExecSession>();
  #stopping: Promise<void> | undefined;

  /** Throws INVALID_CONFIG for addresses that cannot be asked. */
  constructor(config: NomadClientConfig, deps: NomadClientDeps) {
    this.#connection = new Connection(config, deps);
    this.#http = new Http(this.#connection);
    this.jobs = new Jobs(this.#http);
    this.evaluations = new Evaluations(this.#http);
    this.allocations = new Allocations(this.#http);
    this.nodes = new Nodes(this.#http);
    this.variables = new Variables(this.#http);
    this.events = new Events(this.#connection, this.#http);
  }

  async leader(signal?: AbortSignal): Promise<string> {
    const answer = await this.#http.request({ method: 'GET', path: '/v1/status/leader', signal });
    if (typeof answer.body !== 'string') throw protocolError('the leader is no text');
    if (answer.body === '') throw new ServiceError('NOMAD_OVERLOADED', 'the Nomad cluster has no leader');
    return answer.body;
  }

  openExec(options: ExecOptions): Promise<ExecSession> {
    return openExec(this.#connection, options, this.#execs);
  }

  /** Idempotent; never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #shutDown(): Promise<void> {
    this.#connection.abort();
    for (const session of this.#execs) session.destroy();
    await this.#connection.idle();
    await this.#http.close();
  }
}
