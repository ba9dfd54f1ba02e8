import { ServiceError } from '../../base/errors.js';
import type { EnvironmentId } from '../../base/ids.js';
import type { Environment } from '../../environments/environment.js';
import { createEnvironment } from '../../environments/environment.js';
import type { EnvironmentAnswer, EnvironmentBody, EnvironmentListAnswer } from '../../protocol/http.js';
import { sendEmpty, sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { readJson } from '../middleware/body.js';
import {
  deleteEnvironment,
  getEnvironment,
  listEnvironments,
  putEnvironment,
} from '../operations/environments.js';
import { parseEnvironmentId } from '../schemas/environment.js';
import type { ApiRouter } from './route.js';
import { parameter, route } from './route.js';

export function environmentRoutes(router: ApiRouter, { runners, config, clock }: ApiDeps): void {
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  router.declare(
    route(listEnvironments, async (req, res) => {
      const { fetch } = listEnvironments.parseQuery(req);
      if (fetch) await runners.refreshEnvironments(contextOf(req).requestSignal);
      const answer: EnvironmentListAnswer = { executionEnvironments: runners.environments().map(toAnswer) };
      sendJson(res, 200, answer);
    }),
  );

  router.declare(
    route(getEnvironment, async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      const { fetch } = getEnvironment.parseQuery(req);
      if (fetch) await runners.refreshEnvironments(contextOf(req).requestSignal);
      sendJson(res, 200, toAnswer(runners.environment(id)));
    }),
    route(putEnvironment, async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      putEnvironment.parseQuery(req);
      const environment = toEnvironment(id, putEnvironment.parseBody(await readJson(req, body)));
      const outcome = await runners.putEnvironment(environment);
      sendEmpty(res, outcome === 'created' ? 201 : 204);
    }),
    route(deleteEnvironment, async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      deleteEnvironment.parseQuery(req);
      await runners.deleteEnvironment(id);
      sendEmpty(res, 204);
    }),
  );
}

function toEnvironment(id: EnvironmentId, body: EnvironmentBody): Environment {
  if (body.id !== undefined && body.id !== id) {
    throw new ServiceError('INVALID_REQUEST', `id must be ${id}, as in the path, not ${body.id}`);
  }
  return createEnvironment({
    id,
    image: body.image,
    prewarmingPoolSize: body.prewarmingPoolSize,
    cpuLimit: body.cpuLimit,
    memoryLimit: body.memoryLimit,
    networkAccess: body.networkAccess,
    exposedPorts: body.exposedPorts ?? [],
    name: body.name,
    user: body.user,
    environment: body.environment ?? {},
  });
}

function toAnswer(environment: Environment): EnvironmentAnswer {
  const { id, image, prewarmingPoolSize, cpuLimit, memoryLimit, networkAccess, exposedPorts } = environment;
  const { name, user, environment: variables } = environment;
  return {
    id,
    image,
    prewarmingPoolSize,
    cpuLimit,
    memoryLimit,
    networkAccess,
    exposedPorts,
    ...(name === undefined ? {} : { name }),
    ...(user === undefined ? {} : { user }),
    ...(Object.keys(variables).length === 0 ? {} : { environment: variables }),
  };
}
