import type { ErrorRequestHandler, Express } from 'express';
import express from 'express';
import { ServiceError } from '../base/errors.js';
import type { Authenticator } from './access/authenticator.js';
import { assertNotFenced } from './access/fence.js';
import { openContext } from './context.js';
import type { ApiDeps } from './deps.js';
import { Crossing } from './forwarding/crossing.js';
import { answerError } from './middleware/errors.js';
import { documentationRoutes } from './routes/documentation.js';
import { environmentRoutes } from './routes/environments.js';
import { executionRoutes } from './routes/execution.js';
import { fileRoutes } from './routes/files.js';
import { healthRoutes } from './routes/health.js';
import { ApiRouter } from './routes/route.js';
import { runnerRoutes } from './routes/runners.js';
import { statisticsRoutes } from './routes/statistics.js';
import { versionRoutes } from './routes/version.js';

/**
 * The HTTP side of the API as a request handler; it does not listen (server.ts) and does not upgrade (websocket/).
 *
 * Order: context and log line, health, token, routes, 404, errors. Whatever is thrown ends in `answerError`.
 */
export function createApp(
  deps: ApiDeps,
  authenticator: Authenticator,
  crossing = new Crossing(deps.runners, undefined),
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('case sensitive routing');

  app.use((req, res, next) => {
    openContext(req, res, deps);
    next();
  });
  const router = new ApiRouter(app, crossing);
  healthRoutes(router, deps);
  app.use((req, _res, next) => {
    authenticator.admit(req, 'request');
    assertNotFenced(deps.cluster);
    next();
  });
  // They are tried in this order: what is asked most often comes first.
  for (const declare of [
    executionRoutes,
    runnerRoutes,
    fileRoutes,
    versionRoutes,
    statisticsRoutes,
    documentationRoutes,
    environmentRoutes,
  ]) {
    declare(router, deps);
  }
  app.use(() => {
    throw new ServiceError('ROUTE_NOT_FOUND', 'there is no such route; the API is below /api/v1');
  });
  const onError: ErrorRequestHandler = (error, req, res, _next) => answerError(req, res, error, deps);
  app.use(onError);
  return app;
}
