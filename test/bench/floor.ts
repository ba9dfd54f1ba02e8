/**
 * The floor, a process of its own: what the API costs by itself.
 *
 * The real ApiServer (middleware, tokens, validation, logging, WebSocket gateway) over executions that start at once,
 * print what `echo` would print of the command, and exit with 0. Whatever an execution takes longer than here is the
 * time of sessions, Nomad and the runner.
 */
import { ApiServer } from '../../lib/api/server.js';
import { systemClock } from '../../lib/base/clock.js';
import { ServiceError } from '../../lib/base/errors.js';
import { environmentId, executionId, replicaId, systemRandomness } from '../../lib/base/ids.js';
import type { ExecutionId } from '../../lib/base/ids.js';
import { createLogger } from '../../lib/base/log.js';
import { Standalone } from '../../lib/cluster/standalone.js';
import { loadConfig } from '../../lib/config/load.js';
import type {
  ExecutionRequest,
  ExecutionSink,
  ExecutionsApi,
  PreparedExecution,
  RunningExecution,
} from '../../lib/execution/api.js';
import type { ClaimedRunner } from '../../lib/runners/runner.js';
import { FakeRunners } from '../support/api-fakes.js';
import { FakeFiles } from '../support/fake-files.js';
import { benchEnvironment } from './environment.js';

class InstantExecutions implements ExecutionsApi {
  readonly #prepared = new Map<ExecutionId, PreparedExecution>();

  prepare(_runner: ClaimedRunner, request: ExecutionRequest): ExecutionId {
    const id = executionId(systemRandomness.uuid());
    this.#prepared.set(id, { id, run: (sink) => runInstantly(request, sink) });
    return id;
  }

  take(_runner: ClaimedRunner, id: ExecutionId): PreparedExecution {
    const execution = this.#prepared.get(id);
    if (!execution) throw new ServiceError('EXECUTION_NOT_FOUND', 'there is no such execution');
    this.#prepared.delete(id);
    return execution;
  }
}

function runInstantly({ command }: ExecutionRequest, sink: ExecutionSink): RunningExecution {
  sink.started();
  sink.output('stdout', `${command.replace(/^echo /, '')}\r\n`);
  return {
    exit: Promise.resolve({ kind: 'exited', exitCode: 0 }),
    cleared: Promise.resolve(),
    write: () => Promise.resolve(),
    closeStdin: () => undefined,
    resize: () => undefined,
    signal: () => Promise.resolve(),
    hangUp: () => undefined,
  };
}

const { config } = loadConfig({ env: process.env, cwd: process.cwd() });
const runners = new FakeRunners();
const log = createLogger(config.log);
runners.known.set(environmentId(0), benchEnvironment);
const server = new ApiServer({
  cluster: new Standalone({ id: replicaId('bench'), address: 'http://127.0.0.1:1' }),
  runners,
  executions: new InstantExecutions(),
  files: new FakeFiles(),
  config,
  version: '0',
  log,
  clock: systemClock,
  randomness: systemRandomness,
  graceMs: 1000,
});
process.once('SIGTERM', () => void server.stop());
await server.start();
log.info('serving', { url: server.url });
