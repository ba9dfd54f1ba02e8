import { API_BASE } from '../../protocol/http.js';
import { sendHtml, sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { createDocument } from '../openapi/document.js';
import { PAGE_POLICY, renderPage } from '../openapi/page.js';
import type { OpenApiDocument } from '../openapi/types.js';
import { getDocs, getOpenApi } from '../operations/service.js';
import type { ApiRouter } from './route.js';
import { route } from './route.js';

/** What the page is called without the base of the API. */
const SHORT_PATH = '/docs';

/** The description of the API, for machines and for people. Made at each request: its options may change meanwhile. */
export function documentationRoutes(router: ApiRouter, { config, version }: ApiDeps): void {
  const document = (): OpenApiDocument =>
    createDocument({
      version,
      peerStatuses: config.api.peerStatuses,
      maxBodyBytes: config.server.maxBodyBytes,
    });

  router.declare(
    route(getOpenApi, (req, res) => {
      getOpenApi.parseQuery(req);
      sendJson(res, 200, document());
    }),
  );

  router.declare(
    route(getDocs, (req, res) => {
      getDocs.parseQuery(req);
      sendHtml(res, renderPage(document()), PAGE_POLICY);
    }),
  );

  router.aside(SHORT_PATH, (_req, res) => {
    res.writeHead(308, { Location: `${API_BASE}/docs`, 'Content-Length': 0 });
    res.end();
  });
}
