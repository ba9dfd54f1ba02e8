import type { Request, Response, Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import { contextOf } from '../context.js';

/** Handles one method of one path. A rejection is answered by the error middleware. */
export type Handler = (req: Request, res: Response) => void | Promise<void>;

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * Declares a path with its methods. HEAD goes with GET; any other method is answered with 405 and `Allow`. The path's
 * pattern becomes the route of the request's log line.
 */
export function declareRoute(
  router: Router,
  path: string,
  handlers: Readonly<Partial<Record<Method, Handler>>>,
): void {
  const byMethod = new Map<string, Handler>(Object.entries(handlers));
  const get = byMethod.get('GET');
  if (get) byMethod.set('HEAD', get);
  const allowed = [...byMethod.keys()].join(', ');
  router.all(path, async (req, res) => {
    contextOf(req).route = path;
    const handler = byMethod.get(req.method);
    if (!handler) {
      res.setHeader('Allow', allowed);
      throw new ServiceError(
        'METHOD_NOT_ALLOWED',
        `${req.method} is not possible here; possible: ${allowed}`,
      );
    }
    await handler(req, res);
  });
}

/** A named part of the path; Express has no other form than a text for those used here. */
export function parameter(req: Request, name: string): string {
  const value = req.params[name];
  if (typeof value === 'string') return value;
  throw new ServiceError('ILLEGAL_STATE', `a route without the parameter ${name}`);
}
