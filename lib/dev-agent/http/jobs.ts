import type { Router } from 'express';
import { HttpFailure } from '../failure.js';
import { Fields } from '../fields.js';
import type { EvaluationStarted } from '../cluster.js';
import { jobSummary } from '../state/job-status.js';
import { renderJobRow } from '../state/render.js';
import { jobToken } from '../state/store.js';
import type { RouteDeps } from './answers.js';
import {
  askedFor,
  jsonBody,
  namespaceOf,
  notFound,
  pathValue,
  queryFlag,
  sendAllocations,
  sendQuery,
  sendWrite,
} from './answers.js';
import { page } from './paging.js';

/** `/v1/jobs` and `/v1/job/…`. */
export function addJobRoutes(router: Router, { cluster }: RouteDeps): void {
  router.get('/v1/jobs', (request, response) => {
    const { store } = cluster();
    const meta = queryFlag(request, 'meta');
    const rows = page(request, response, {
      records: store.jobs().filter(askedFor(request)),
      token: jobToken,
      isBefore: (job, token) => jobToken(job) < token,
      datum: (job) => job,
    }).map((job) => {
      const { Namespace, ID } = job;
      return renderJobRow(job, store.allocationsOf(Namespace, ID), store.evaluationsOf(Namespace, ID), {
        meta,
      });
    });
    sendQuery(response, store.indexOf('jobs', 'job_summary'), rows);
  });

  router.all('/v1/jobs', (request, response) => {
    if (request.method !== 'PUT' && request.method !== 'POST') throw new HttpFailure(405, 'Invalid method');
    const body = Fields.of(jsonBody(request), 'JobRegisterRequest');
    if (!body.has('Job')) throw new HttpFailure(400, 'Job must be specified');
    const job = body.object('Job');
    if (job.string('ID', '') === '') throw new HttpFailure(400, "Job ID hasn't been provided");
    const namespace = job.string('Namespace', '') || namespaceOf(request);
    const enforceIndex = body.boolean('EnforceIndex', false) ? body.integer('JobModifyIndex', 0) : undefined;
    const started = cluster().register({ job: body.raw('Job'), namespace, enforceIndex });
    sendWrite(response, started.index, { ...evaluationAnswer(started), Warnings: '' });
  });

  router.post('/v1/jobs/parse', () => {
    throw new HttpFailure(
      400,
      'Failed to parse job: HCL is not supported by the embedded agent, give the job as JSON',
    );
  });

  router.get('/v1/job/:id', (request, response) => {
    const { store } = cluster();
    const job = store.job(namespaceOf(request), pathValue(request, 'id'));
    if (!job) throw notFound(response, store.indexOf('jobs'), 'job not found');
    sendQuery(response, job.ModifyIndex, job);
  });

  router.delete('/v1/job/:id', (request, response) => {
    const purge = queryFlag(request, 'purge');
    const started = cluster().deregister(namespaceOf(request), pathValue(request, 'id'), { purge });
    const answer = started ?? { evaluationId: '', evaluationIndex: 0, index: 0, jobModifyIndex: 0 };
    sendWrite(response, answer.index, { ...evaluationAnswer(answer), VolumeEvalID: '', VolumeEvalIndex: 0 });
  });

  router.get('/v1/job/:id/allocations', (request, response) => {
    const { store } = cluster();
    const allocations = store.allocationsOf(namespaceOf(request), pathValue(request, 'id'));
    sendAllocations(response, store, allocations);
  });

  router.get('/v1/job/:id/evaluations', (request, response) => {
    const { store } = cluster();
    const evaluations = store.evaluationsOf(namespaceOf(request), pathValue(request, 'id'));
    sendQuery(response, store.indexOf('evals'), evaluations);
  });

  router.get('/v1/job/:id/summary', (request, response) => {
    const { store } = cluster();
    const namespace = namespaceOf(request);
    const id = pathValue(request, 'id');
    const job = store.job(namespace, id);
    if (!job) throw notFound(response, store.indexOf('jobs'), 'job not found');
    const summary = jobSummary(job, store.allocationsOf(namespace, id), store.evaluationsOf(namespace, id));
    sendQuery(response, summary.ModifyIndex, summary);
  });
}

function evaluationAnswer(started: EvaluationStarted): Record<string, unknown> {
  return {
    EvalCreateIndex: started.evaluationIndex,
    EvalID: started.evaluationId,
    Index: started.index,
    JobModifyIndex: started.jobModifyIndex,
    KnownLeader: false,
    LastContact: 0,
    NextToken: '',
  };
}
