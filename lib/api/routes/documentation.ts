import type { Router } from 'express';
import { API_BASE } from '../../protocol/http.js';
import { sendHtml, sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { createDocument } from '../openapi/document.js';
import { PAGE_POLICY, renderPage } from '../openapi/page.js';
import type { OpenApiDocument } from '../openapi/types.js';
import { getDocs, getOpenApi } from '../operations/service.js';
import { declareRoutes, route } from './route.js';

/** What the page is called without the base of the API. */
const SHORT_PATH = '/docs';

/** The description of the API, for machines and for people. Made at each request: its options may change meanwhile. */
export function documentationRoutes(router: Router, { config, version }: ApiDeps): void {
  const document = (): OpenApiDocument =>
    createDocument({
      version,
      peerStatuses: config.api.peerStatuses,
      maxBodyBytes: config.server.maxBodyBytes,
    });

  declareRoutes(
    router,
    route(getOpenApi, (req, res) => {
      getOpenApi.parseQuery(req);
      sendJson(res, 200, document());
    }),
  );

  declareRoutes(
    router,
    route(getDocs, (req, res) => {
      getDocs.parseQuery(req);
      sendHtml(res, renderPage(document()), PAGE_POLICY);
    }),
  );

  router.get(SHORT_PATH, (req, res) => {
    contextOf(req).route = SHORT_PATH;
    res.writeHead(308, { Location: `${API_BASE}/docs`, 'Content-Length': 0 });
    res.end();
  });
}
