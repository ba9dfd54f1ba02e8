import type { Router } from 'express';
import type { StatisticsAnswer } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { getStatistics } from '../operations/service.js';
import { declareRoutes, route } from './route.js';

export function statisticsRoutes(router: Router, { runners }: ApiDeps): void {
  declareRoutes(
    router,
    route(getStatistics, (req, res) => {
      getStatistics.parseQuery(req);
      const answer: StatisticsAnswer = Object.fromEntries(
        runners.statistics().map((each) => [each.id, each]),
      );
      sendJson(res, 200, answer);
    }),
  );
}
