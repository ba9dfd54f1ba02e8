import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import type { ExecutionId, RunnerId } from '../../base/ids.js';
import type { ExecuteAnswer } from '../../protocol/http.js';
import { API_BASE } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { readJson } from '../middleware/body.js';
import { openSocket, prepareExecution } from '../operations/runners.js';
import { declareRoutes, parameter, route } from './route.js';

export function executionRoutes(router: Router, { runners, executions, config, clock }: ApiDeps): void {
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  declareRoutes(
    router,
    route(prepareExecution, async (req, res) => {
      const id = parameter(req, 'id');
      runners.get(id); // an unknown runner is told before its body is judged
      prepareExecution.parseQuery(req);
      const request = prepareExecution.parseBody(await readJson(req, body));
      const runner = runners.get(id); // it may have gone while the body arrived
      const executionId = executions.prepare(runner, {
        command: request.command,
        privileged: request.privilegedExecution ?? false,
        environment: request.environment ?? {},
        timeLimitSeconds: request.timeLimit ?? 0,
        outputLimitBytes: request.outputLimit,
        interactive: request.interactive ?? true,
        workingDirectory: request.workingDirectory,
      });
      const answer: ExecuteAnswer = { websocketUrl: websocketUrl(req, runner.id, executionId) };
      sendJson(res, 200, answer);
    }),
  );

  // The handshake itself never comes here: websocket/upgrade.ts takes it from the server.
  declareRoutes(
    router,
    route(openSocket, (req) => {
      openSocket.parseQuery(req);
      runners.get(parameter(req, 'id'));
      throw new ServiceError(
        'INVALID_REQUEST',
        'this address is for WebSockets, and the request is no handshake',
      );
    }),
  );
}

/** The address under which the client reached us, since that is one that works for it. */
function websocketUrl(req: IncomingMessage, runnerId: RunnerId, executionId: ExecutionId): string {
  const { socket, headers } = req;
  const scheme = socket instanceof TLSSocket ? 'wss' : 'ws';
  const host = headers.host ?? '';
  const authority = /^([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?$/.test(host) ? host : localAuthority(socket);
  return `${scheme}://${authority}${API_BASE}/runners/${runnerId}/websocket?executionID=${executionId}`;
}

/** Clients of HTTP/1.0 send no Host. */
function localAuthority({ localAddress = '127.0.0.1', localPort = 80 }: IncomingMessage['socket']): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
