import type { Request, Response, Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import { API_BASE } from '../../protocol/http.js';
import { assertAllowed } from '../access/principal.js';
import { contextOf } from '../context.js';
import type { Operation } from '../operations/operation.js';

/** Handles one operation. A rejection is answered by the error middleware. */
export type Handler = (req: Request, res: Response) => void | Promise<void>;

/** An operation with what answers it. */
export interface Route {
  readonly operation: Operation;
  readonly handle: Handler;
}

export function route(operation: Operation, handle: Handler): Route {
  return { operation, handle };
}

/**
 * Declares the routes of one path; each takes requests only from those to whom its operation gives access. HEAD goes
 * with GET; any other method is answered with 405 and `Allow`. The path's pattern becomes the route of the request's log
 * line.
 */
export function declareRoutes(router: Router, ...routes: readonly [Route, ...Route[]]): void {
  const path = expressPath(routes[0].operation);
  const byMethod = new Map<string, Route>();
  for (const each of routes) {
    const { operation } = each;
    if (expressPath(operation) !== path) {
      throw new ServiceError('ILLEGAL_STATE', `${operation.id} is not at ${path}`);
    }
    byMethod.set(operation.method, each);
  }
  const get = byMethod.get('GET');
  if (get) byMethod.set('HEAD', get);
  const allowed = [...byMethod.keys()].join(', ');
  router.all(path, async (req, res) => {
    const context = contextOf(req);
    context.route = path;
    const found = byMethod.get(req.method);
    if (!found) {
      res.setHeader('Allow', allowed);
      throw new ServiceError(
        'METHOD_NOT_ALLOWED',
        `${req.method} is not possible here; possible: ${allowed}`,
      );
    }
    assertAllowed(context.principal, found.operation.access);
    await found.handle(req, res);
  });
}

/** Where an operation is served, with parameters as Express writes them: `/api/v1/runners/:id`. */
export function expressPath({ path }: Pick<Operation, 'path'>): string {
  return API_BASE + path.replace(/\{(\w+)\}/g, ':$1');
}

/** A named part of the path; Express has no other form than a text for those used here. */
export function parameter(req: Request, name: string): string {
  const value = req.params[name];
  if (typeof value === 'string') return value;
  throw new ServiceError('ILLEGAL_STATE', `a route without the parameter ${name}`);
}
