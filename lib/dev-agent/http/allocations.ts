import type { Router } from 'express';
import { HttpFailure } from '../failure.js';
import { Fields } from '../fields.js';
import type { Allocation } from '../state/records.js';
import { renderAllocation, renderAllocationRow } from '../state/render.js';
import type { RouteDeps } from './answers.js';
import {
  askedFor,
  assertUuid,
  notFound,
  optionalBody,
  pathValue,
  queryFlag,
  queryValue,
  sendAllocations,
  sendQuery,
  sendWrite,
} from './answers.js';
import { page } from './paging.js';

/** `/v1/allocations`, `/v1/allocation/…`, `/v1/client/allocation/…` (less exec) and `/v1/evaluation/…`. */
export function addAllocationRoutes(router: Router, { cluster }: RouteDeps): void {
  router.get('/v1/allocations', (request, response) => {
    const { store } = cluster();
    const options = {
      taskStates: queryValue(request, 'task_states') === '' || queryFlag(request, 'task_states'),
      resources: queryFlag(request, 'resources'),
    };
    const records = [...store.allocations()].filter(askedFor(request));
    records.sort((a, b) => a.CreateIndex - b.CreateIndex || (a.ID < b.ID ? -1 : 1));
    const rows = page(request, response, { records, token, isBefore, datum: (one) => one });
    sendQuery(
      response,
      store.indexOf('allocs'),
      rows.map((one) => renderAllocationRow(one, options)),
    );
  });

  router.get('/v1/allocation/:id', (request, response) => {
    const id = pathValue(request, 'id');
    assertUuid(id, 'alloc');
    const { store } = cluster();
    const allocation = store.allocation(id);
    if (!allocation) throw notFound(response, store.indexOf('allocs'), 'alloc not found');
    const { Job } = allocation;
    sendQuery(response, allocation.ModifyIndex, { ...renderAllocation(allocation), Job });
  });

  for (const method of ['put', 'post'] as const) {
    router[method]('/v1/allocation/:id/stop', (request, response) => {
      const id = pathValue(request, 'id');
      assertUuid(id, 'alloc');
      const allocation = cluster().store.allocation(id);
      if (!allocation) throw new HttpFailure(404, 'alloc not found');
      const { evaluationId, index } = cluster().stopAllocation(allocation);
      sendWrite(response, index, { EvalID: evaluationId, Index: index });
    });

    router[method]('/v1/client/allocation/:id/restart', async (request, response) => {
      const id = pathValue(request, 'id');
      assertUuid(id, 'alloc');
      const { store, client } = cluster();
      if (!store.allocation(id)) throw new HttpFailure(404, `Unknown allocation "${id}"`);
      const task = Fields.of(optionalBody(request), 'AllocRestartRequest').string('TaskName', '');
      const runner = client.runner(id);
      if (task !== '' && runner && !runner.task(task))
        throw new HttpFailure(500, 'Could not find task runner');
      const done = await runner?.restart(task === '' ? undefined : task);
      if (done !== true) throw new HttpFailure(500, 'Task not running');
      response.status(200).json({ Index: 0 });
    });
  }

  router.get('/v1/evaluation/:id', (request, response) => {
    const id = pathValue(request, 'id');
    assertUuid(id, 'eval');
    const { store } = cluster();
    const evaluation = store.evaluation(id);
    if (!evaluation) throw notFound(response, store.indexOf('evals'), 'eval not found');
    sendQuery(response, evaluation.ModifyIndex, evaluation);
  });

  router.get('/v1/evaluation/:id/allocations', (request, response) => {
    const id = pathValue(request, 'id');
    assertUuid(id, 'eval');
    const { store } = cluster();
    const allocations = [...store.allocations()].filter(({ EvalID }) => EvalID === id);
    sendAllocations(response, store, allocations);
  });
}

function token({ CreateIndex, ID }: Allocation): string {
  return `${CreateIndex}.${ID}`;
}

function isBefore(allocation: Allocation, start: string): boolean {
  const [index = '', id = ''] = start.split('.');
  const difference = allocation.CreateIndex - Number(index);
  return difference < 0 || (difference === 0 && allocation.ID < id);
}
