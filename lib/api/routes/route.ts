import type { Request, Response, Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import { API_BASE } from '../../protocol/http.js';
import { assertAllowed } from '../access/principal.js';
import { contextOf } from '../context.js';
import { releaseBody } from '../forwarding/continuation.js';
import type { Crossing } from '../forwarding/crossing.js';
import type { Operation } from '../operations/operation.js';
import { runnerParameterOf } from '../operations/runners.js';

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
 * Where routes are declared. A request for a runner that another replica has is passed on to that before its route sees it;
 * which routes are of a runner is told by their operations.
 */
export class ApiRouter {
  readonly #router: Router;
  readonly #crossing: Crossing;

  constructor(router: Router, crossing: Crossing) {
    this.#router = router;
    this.#crossing = crossing;
  }

  /** Declares what is at a path outside of the API, for whoever has a token. */
  aside(path: string, handle: Handler): void {
    this.#router.get(path, async (req, res) => {
      contextOf(req).route = path;
      await handle(req, res);
    });
  }

  /**
   * Declares the routes of one path; each takes requests only from those to whom its operation gives access. HEAD goes
   * with GET; any other method is answered with 405 and `Allow`. The path's pattern becomes the route of the request's log
   * line.
   */
  declare(...routes: readonly [Route, ...Route[]]): void {
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
    this.#router.all(path, async (req, res) => {
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
      await this.#serve(found, req, res);
    });
  }

  async #serve({ operation, handle }: Route, req: Request, res: Response): Promise<void> {
    const name = runnerParameterOf(operation);
    if (name !== undefined) {
      const id = parameter(req, name);
      if (!this.#crossing.isHere(id) && (await this.#crossing.answer(id, operation, req, res))) return;
    }
    releaseBody(req);
    await handle(req, res);
  }
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
