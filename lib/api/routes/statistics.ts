import type { StatisticsAnswer } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { getStatistics } from '../operations/service.js';
import type { ApiRouter } from './route.js';
import { route } from './route.js';

export function statisticsRoutes(router: ApiRouter, { runners }: ApiDeps): void {
  router.declare(
    route(getStatistics, (req, res) => {
      getStatistics.parseQuery(req);
      const answer: StatisticsAnswer = Object.fromEntries(
        runners.statistics().map((each) => [each.id, each]),
      );
      sendJson(res, 200, answer);
    }),
  );
}
