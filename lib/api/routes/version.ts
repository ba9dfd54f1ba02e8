import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { getVersion } from '../operations/service.js';
import type { ApiRouter } from './route.js';
import { route } from './route.js';

export function versionRoutes(router: ApiRouter, { version }: ApiDeps): void {
  router.declare(
    route(getVersion, (req, res) => {
      getVersion.parseQuery(req);
      sendJson(res, 200, version);
    }),
  );
}
