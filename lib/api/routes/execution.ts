import type { Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import type { ExecuteAnswer } from '../../protocol/http.js';
import { API_BASE } from '../../protocol/http.js';
import { PublicUrl } from '../address/public-url.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { toExecutionRequest } from '../execution-request.js';
import { readJson } from '../middleware/body.js';
import { openSession, openSocket, prepareExecution } from '../operations/runners.js';
import { declareRoutes, parameter, route } from './route.js';

export function executionRoutes(router: Router, { runners, executions, config, clock }: ApiDeps): void {
  const publicUrl = new PublicUrl(config.server);
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  declareRoutes(
    router,
    route(prepareExecution, async (req, res) => {
      const id = parameter(req, 'id');
      runners.get(id); // an unknown runner is told before its body is judged
      prepareExecution.parseQuery(req);
      const request = prepareExecution.parseBody(await readJson(req, body));
      const runner = runners.get(id); // it may have gone while the body arrived
      const executionId = executions.prepare(runner, toExecutionRequest(request));
      const path = `${API_BASE}/runners/${runner.id}/websocket?executionID=${executionId}`;
      const answer: ExecuteAnswer = { websocketUrl: publicUrl.socketBase(req) + path };
      sendJson(res, 200, answer);
    }),
  );

  // The handshakes themselves never come here: websocket/upgrade.ts takes them from the server.
  for (const operation of [openSocket, openSession]) {
    declareRoutes(
      router,
      route(operation, (req) => {
        operation.parseQuery(req);
        runners.get(parameter(req, 'id'));
        throw new ServiceError(
          'INVALID_REQUEST',
          'this address is for WebSockets, and the request is no handshake',
        );
      }),
    );
  }
}
