import type { Router } from 'express';
import { HttpFailure } from '../failure.js';
import { Fields } from '../fields.js';
import type { Variable } from '../state/records.js';
import type { RouteDeps } from './answers.js';
import { page } from './paging.js';
import { jsonBody, namespaceOf, notFound, pathValue, queryValue, sendQuery, sendWrite } from './answers.js';

/**
 * `/v1/vars`, which tells nothing of what variables hold, and `/v1/var/<path>`, with check-and-set: a conflict answers 409
 * and the variable as it is now.
 */
export function addVariableRoutes(router: Router, { cluster }: RouteDeps): void {
  router.get('/v1/vars', (request, response) => {
    const { store } = cluster();
    const namespace = namespaceOf(request);
    const prefix = queryValue(request, 'prefix');
    const found = [...store.variables()]
      .filter(({ Namespace }) => namespace === '*' || Namespace === namespace)
      .filter(({ Path }) => Path.startsWith(prefix))
      .sort((a, b) => (tokenOf(a) < tokenOf(b) ? -1 : 1));
    const rows = page(request, response, {
      records: found,
      token: tokenOf,
      isBefore: (variable, token) => tokenOf(variable) < token,
      datum: (variable) => variable,
    }).map(({ Items: _, ...metadata }) => metadata);
    sendQuery(response, store.indexOf('variables'), rows);
  });

  router.get('/v1/var/*path', (request, response) => {
    const { store } = cluster();
    const variable = store.variable(namespaceOf(request), pathValue(request, 'path'));
    if (!variable) throw notFound(response, store.indexOf('variables'), 'variable not found');
    sendQuery(response, variable.ModifyIndex, variable);
  });

  router.put('/v1/var/*path', (request, response) => {
    const { store } = cluster();
    const Namespace = namespaceOf(request);
    const Path = pathValue(request, 'path');
    const body = Fields.of(jsonBody(request), 'Variable');
    if (!['', Path].includes(body.string('Path', ''))) {
      throw new HttpFailure(400, "PUT variable path doesn't match the one in the body");
    }
    const Items = body.stringMap('Items');
    if (!Items || Object.keys(Items).length === 0) {
      throw new HttpFailure(400, 'variable missing required Items object');
    }
    const current = store.variable(Namespace, Path);
    const conflict = conflictOf(current, queryValue(request, 'cas'), Namespace, Path);
    if (conflict) {
      response.set('X-Nomad-Index', String(conflict.ModifyIndex)).status(409).json(conflict);
      return;
    }
    const { CreateIndex, CreateTime } = current ?? { CreateIndex: 0, CreateTime: 0 };
    const stored = store.apply('VariablesUpsert', (tx) =>
      tx.putVariable({ Namespace, Path, Items, CreateIndex, CreateTime }),
    );
    sendWrite(response, stored.ModifyIndex, stored);
  });

  router.delete('/v1/var/*path', (request, response) => {
    const { store } = cluster();
    const Namespace = namespaceOf(request);
    const Path = pathValue(request, 'path');
    const current = store.variable(Namespace, Path);
    const conflict = conflictOf(current, queryValue(request, 'cas'), Namespace, Path);
    if (conflict) {
      response.set('X-Nomad-Index', String(conflict.ModifyIndex)).status(409).json(conflict);
      return;
    }
    if (current) store.apply('VariablesDelete', (tx) => tx.deleteVariable(current));
    response.set('X-Nomad-Index', String(store.index)).status(204).end();
  });
}

function tokenOf({ Namespace, Path }: Variable): string {
  return `${Namespace}.${Path}`;
}

/** The variable that stands against a check-and-set, or undefined where nothing does. */
function conflictOf(
  current: Variable | undefined,
  cas: string,
  Namespace: string,
  Path: string,
): Variable | undefined {
  if (cas === '') return undefined;
  const wanted = Number(cas);
  if (!Number.isSafeInteger(wanted) || wanted < 0) {
    throw new HttpFailure(400, `can't parse CAS value: strconv.ParseUint: parsing "${cas}": invalid syntax`);
  }
  const none = { Namespace, Path, Items: {}, CreateIndex: 0, ModifyIndex: 0, CreateTime: 0, ModifyTime: 0 };
  const now = current ?? none;
  return now.ModifyIndex === wanted ? undefined : now;
}
