import { ServiceError } from '../../base/errors.js';
import type { ExecuteAnswer } from '../../protocol/http.js';
import { API_BASE } from '../../protocol/http.js';
import { PublicUrl } from '../address/public-url.js';
import { sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { toExecutionRequest } from '../execution-request.js';
import { readJson } from '../middleware/body.js';
import { openSession, openSocket, prepareExecution } from '../operations/runners.js';
import type { ApiRouter } from './route.js';
import { parameter, route } from './route.js';

export function executionRoutes(router: ApiRouter, { runners, executions, config, clock }: ApiDeps): void {
  const publicUrl = new PublicUrl(config.server);
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  router.declare(
    route(prepareExecution, async (req, res) => {
      const id = parameter(req, 'id');
      runners.get(id); // an unknown runner is told before its body is judged
      prepareExecution.parseQuery(req);
      const request = prepareExecution.parseBody(await readJson(req, body));
      const runner = runners.get(id); // it may have gone while the body arrived
      const executionId = executions.prepare(runner, toExecutionRequest(request));
      const path = `${API_BASE}/runners/${runner.id}/websocket?executionID=${executionId}`;
      const base = contextOf(req).hop?.socketBase ?? publicUrl.socketBase(req);
      const answer: ExecuteAnswer = { websocketUrl: base + path };
      sendJson(res, 200, answer);
    }),
  );

  // The handshakes themselves never come here: websocket/upgrade.ts takes them from the server.
  for (const operation of [openSocket, openSession]) {
    router.declare(
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
