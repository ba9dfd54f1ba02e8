import type { Router } from 'express';
import { ServiceError } from '../../base/errors.js';
import type { EnvironmentId } from '../../base/ids.js';
import type { Environment } from '../../environments/environment.js';
import { createEnvironment } from '../../environments/environment.js';
import type { EnvironmentAnswer, EnvironmentBody } from '../../protocol/http.js';
import { API_BASE } from '../../protocol/http.js';
import { sendEmpty, sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { readJson } from '../middleware/body.js';
import { parseEnvironmentId, validateEnvironment, validateFetch } from '../schemas/environment.js';
import { validateNoQuery } from '../schemas/runner.js';
import { declareRoute, parameter } from './route.js';

export function environmentRoutes(router: Router, { runners, config, clock }: ApiDeps): void {
  const body = { limitBytes: config.server.maxBodyBytes, clock };

  declareRoute(router, `${API_BASE}/execution-environments`, {
    GET: async (req, res) => {
      if (validateFetch(req).fetch === 'true')
        await runners.refreshEnvironments(contextOf(req).requestSignal);
      sendJson(res, 200, { executionEnvironments: runners.environments().map(toAnswer) });
    },
  });

  declareRoute(router, `${API_BASE}/execution-environments/:id`, {
    GET: async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      if (validateFetch(req).fetch === 'true')
        await runners.refreshEnvironments(contextOf(req).requestSignal);
      sendJson(res, 200, toAnswer(runners.environment(id)));
    },
    PUT: async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      validateNoQuery(req);
      const environment = toEnvironment(id, validateEnvironment(await readJson(req, body)));
      const outcome = await runners.putEnvironment(environment);
      sendEmpty(res, outcome === 'created' ? 201 : 204);
    },
    DELETE: async (req, res) => {
      const id = parseEnvironmentId(parameter(req, 'id'));
      validateNoQuery(req);
      await runners.deleteEnvironment(id);
      sendEmpty(res, 204);
    },
  });
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
