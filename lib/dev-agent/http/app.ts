import type { Express, NextFunction, Request, Response } from 'express';
import express from 'express';
import { messageOf } from '../../base/errors.js';
import type { Logger } from '../../base/log.js';
import { HttpFailure } from '../failure.js';
import type { AgentInfoDeps } from './agent-info.js';
import { addAgentRoutes } from './agent-info.js';
import { addAllocationRoutes } from './allocations.js';
import { assertRegion } from './answers.js';
import type { Faults } from '../faults.js';
import type { EventStreams } from './event-stream.js';
import { addFaultRoutes, FAULTS_PREFIX } from './fault-routes.js';
import { addJobRoutes } from './jobs.js';
import { addNodeRoutes } from './nodes.js';
import { addVariableRoutes } from './variables.js';

export interface AppDeps extends AgentInfoDeps {
  readonly log: Logger;
  readonly streams: EventStreams;
  readonly faults: () => Faults;
}

const MAX_BODY = '32mb';

/** The agent's HTTP API as an Express app that does not listen yet. */
export function createApp(deps: AppDeps): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(express.raw({ type: () => true, limit: MAX_BODY }));
  app.use((request, _response, next) => {
    assertRegion(request);
    next();
  });
  app.use(async (request, response, next) => {
    const { path } = request;
    const instead = path.startsWith(FAULTS_PREFIX) ? undefined : await deps.faults().meet(path);
    if (instead) response.status(instead.status).set('Content-Type', 'text/plain').end(instead.text);
    else next();
  });
  const router = express.Router({ caseSensitive: true });
  addJobRoutes(router, deps);
  addAllocationRoutes(router, deps);
  addNodeRoutes(router, deps);
  addVariableRoutes(router, deps);
  addAgentRoutes(router, deps);
  addFaultRoutes(router, deps.faults);
  deps.streams.addRoutes(router, deps);
  app.use(router);
  app.use((_request, response) => {
    response.status(404).end();
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const status = statusOf(error);
    if (status === undefined) {
      deps.log.error('request failed', { method: request.method, path: request.path, error });
    }
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response
      .status(status ?? 500)
      .set('Content-Type', 'text/plain; charset=utf-8')
      .end(messageOf(error));
  });
  return app;
}

/** The status of a refusal, ours or Express's (a body too long, a path that is no path); undefined for a fault. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('status' in error) || typeof error.status !== 'number') return undefined;
  return error instanceof HttpFailure || error.status < 500 ? error.status : undefined;
}
