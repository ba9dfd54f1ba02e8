import type { Router } from 'express';
import { API_BASE } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { validateNoQuery } from '../schemas/runner.js';
import { declareRoute } from './route.js';

export function statisticsRoutes(router: Router, { runners }: ApiDeps): void {
  declareRoute(router, `${API_BASE}/statistics/execution-environments`, {
    GET: (req, res) => {
      validateNoQuery(req);
      sendJson(res, 200, Object.fromEntries(runners.statistics().map((each) => [each.id, each])));
    },
  });
}
