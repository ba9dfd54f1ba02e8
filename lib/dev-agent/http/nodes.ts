import type { Router } from 'express';
import { Fields } from '../fields.js';
import { HttpFailure } from '../failure.js';
import { renderNode, renderNodeRow } from '../state/render.js';
import type { RouteDeps } from './answers.js';
import { assertUuid, jsonBody, notFound, pathValue, sendQuery, sendWrite } from './answers.js';

/** `/v1/nodes` and `/v1/node/…`: the one node, its drain and its eligibility. */
export function addNodeRoutes(router: Router, { cluster }: RouteDeps): void {
  router.get('/v1/nodes', (_request, response) => {
    const { store } = cluster();
    sendQuery(response, store.indexOf('nodes'), [renderNodeRow(store.node)]);
  });

  router.get('/v1/node/:id', (request, response) => {
    const id = pathValue(request, 'id');
    assertUuid(id, 'node');
    const { store } = cluster();
    if (store.node.ID !== id) throw notFound(response, store.indexOf('nodes'), 'node not found');
    sendQuery(response, store.node.ModifyIndex, renderNode(store.node));
  });

  for (const method of ['put', 'post'] as const) {
    router[method]('/v1/node/:id/drain', (request, response) => {
      assertNode(pathValue(request, 'id'));
      const body = Fields.of(jsonBody(request), 'NodeUpdateDrainRequest');
      const spec = body.has('DrainSpec') ? body.object('DrainSpec') : undefined;
      const index = spec
        ? cluster().node.drain({
            deadlineNs: spec.duration('Deadline', 0),
            ignoreSystemJobs: spec.boolean('IgnoreSystemJobs', false),
          })
        : cluster().node.cancelDrain({ markEligible: body.boolean('MarkEligible', false) });
      sendWrite(response, index, { EvalCreateIndex: 0, EvalIDs: null, Index: index, NodeModifyIndex: index });
    });

    router[method]('/v1/node/:id/eligibility', (request, response) => {
      assertNode(pathValue(request, 'id'));
      const body = Fields.of(jsonBody(request), 'NodeUpdateEligibilityRequest');
      const eligibility = body.string('Eligibility', '');
      if (eligibility !== 'eligible' && eligibility !== 'ineligible') {
        throw new HttpFailure(500, `invalid scheduling eligibility "${eligibility}"`);
      }
      const { index, evaluations } = cluster().node.setEligibility(eligibility);
      sendWrite(response, index, {
        EvalCreateIndex: evaluations[0]?.CreateIndex ?? 0,
        EvalIDs: evaluations.length > 0 ? evaluations.map(({ ID }) => ID) : null,
        Index: index,
        NodeModifyIndex: 0,
      });
    });
  }

  function assertNode(id: string): void {
    assertUuid(id, 'node');
    if (cluster().store.node.ID !== id) throw new HttpFailure(404, 'node not found');
  }
}
