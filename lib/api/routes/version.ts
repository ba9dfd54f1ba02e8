import type { Router } from 'express';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { getVersion } from '../operations/service.js';
import { declareRoutes, route } from './route.js';

export function versionRoutes(router: Router, { version }: ApiDeps): void {
  declareRoutes(
    router,
    route(getVersion, (req, res) => {
      getVersion.parseQuery(req);
      sendJson(res, 200, version);
    }),
  );
}
