import { ServiceError } from '../../base/errors.js';
import { assertNotFenced } from '../access/fence.js';
import { sendEmpty } from '../answer.js';
import type { ApiDeps } from '../deps.js';
import { getHealth } from '../operations/service.js';
import type { ApiRouter } from './route.js';
import { route } from './route.js';

/** `GET /health`: may this service be sent clients? The only route without a token. */
export function healthRoutes(router: ApiRouter, { runners, cluster, config }: ApiDeps): void {
  router.declare(
    route(getHealth, (_req, res) => {
      assertNotFenced(cluster);
      if (!runners.nomadReachable) {
        throw new ServiceError(
          'NOMAD_UNREACHABLE',
          'Nomad cannot be reached; check nomad.addresses and the agent',
        );
      }
      if (cluster.trouble !== undefined) throw new ServiceError('NOT_A_MEMBER', cluster.trouble);
      const depleting = runners
        .statistics()
        .filter((each) => each.idleRunners < each.prewarmingPoolSize * config.pool.alertThreshold)
        .map((each) => `${each.id} (${each.idleRunners} of ${each.prewarmingPoolSize})`);
      if (depleting.length > 0) {
        throw new ServiceError(
          'POOL_DEPLETING',
          `too few idle runners in these environments: ${depleting.join(', ')}`,
        );
      }
      sendEmpty(res, 204);
    }),
  );
}
