import { environmentId } from '../../base/ids.js';
import type { MappedPort } from '../../nomad/model.js';
import type { ClaimAnswer, MappedPortAnswer } from '../../protocol/http.js';
import { sendEmpty, sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { readJson } from '../middleware/body.js';
import { claimRunner, returnRunner } from '../operations/runners.js';
import type { ApiRouter } from './route.js';
import { parameter, route } from './route.js';

export function runnerRoutes(router: ApiRouter, { runners, config, clock }: ApiDeps): void {
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  router.declare(
    route(claimRunner, async (req, res) => {
      claimRunner.parseQuery(req);
      const { requestSignal, log } = contextOf(req);
      const claim = claimRunner.parseBody(await readJson(req, body));
      const runner = await runners.claim({
        environmentId: environmentId(claim.executionEnvironmentId),
        inactivityTimeoutSeconds: claim.inactivityTimeout ?? 0,
        requestSignal,
      });
      if (requestSignal.aborted) {
        // Nobody knows the id, so nobody would ever return it.
        log.info('returning a runner whose client left', { runnerId: runner.id });
        await runners.return(runner.id);
        return;
      }
      const answer: ClaimAnswer = { runnerId: runner.id, mappedPorts: runner.mappedPorts.map(toMappedPort) };
      sendJson(res, 200, answer);
    }),
  );

  router.declare(
    route(returnRunner, async (req, res) => {
      returnRunner.parseQuery(req);
      await runners.return(parameter(req, 'id'));
      sendEmpty(res, 204);
    }),
  );
}

function toMappedPort({ exposedPort, hostIp, hostPort }: MappedPort): MappedPortAnswer {
  return { exposedPort, hostAddress: `${hostIp.includes(':') ? `[${hostIp}]` : hostIp}:${hostPort}` };
}
