import type { Router } from 'express';
import { API_BASE } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { validateNoQuery } from '../schemas/runner.js';
import { declareRoute } from './route.js';

export function versionRoutes(router: Router, { version }: ApiDeps): void {
  declareRoute(router, `${API_BASE}/version`, {
    GET: (req, res) => {
      validateNoQuery(req);
      sendJson(res, 200, version);
    },
  });
}
