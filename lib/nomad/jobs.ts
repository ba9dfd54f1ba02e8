import { decodeAllocation } from './allocations.js';
import type { JobListOptions, NomadJobs, RegisterOptions } from './api.js';
import { decodeList, Fields } from './decode.js';
import type { Http } from './http.js';
import { decodeJob } from './job-document.js';
import type { Allocation, JobRow, Registration } from './model.js';
import type { WireJob } from './wire.js';

/** `/v1/jobs` and `/v1/job`. */
export class Jobs implements NomadJobs {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list({ prefix, filter, meta, signal }: JobListOptions = {}): Promise<JobRow[]> {
    const query = { prefix, filter, meta: meta ? 'true' : undefined };
    return this.#http.list({ method: 'GET', path: '/v1/jobs', query, signal }, (body) =>
      decodeList(body, 'the list of jobs', decodeJobRow),
    );
  }

  async get(jobId: string, signal?: AbortSignal): Promise<WireJob | undefined> {
    const answer = await this.#http.find({ method: 'GET', path: jobPath(jobId), signal }, 'job not found');
    return answer && decodeJob(answer.body);
  }

  async register(job: WireJob, { enforceIndex, signal }: RegisterOptions = {}): Promise<Registration> {
    const enforce = enforceIndex === undefined ? {} : { EnforceIndex: true, JobModifyIndex: enforceIndex };
    const body = { Job: job, ...enforce };
    const answer = await this.#http.request({ method: 'PUT', path: '/v1/jobs', body, signal });
    const fields = new Fields(answer.body, 'the registration');
    return {
      evaluationId: fields.textOrEmpty('EvalID'),
      jobModifyIndex: fields.number('JobModifyIndex'),
      warnings: fields.textOrEmpty('Warnings'),
    };
  }

  async purge(jobId: string, signal?: AbortSignal): Promise<{ evaluationId: string | undefined }> {
    const call = {
      method: 'DELETE',
      path: jobPath(jobId),
      query: { purge: 'true' },
      repeatable: true,
      signal,
    } as const;
    const answer = await this.#http.find(call, 'job not found');
    return {
      evaluationId: answer && new Fields(answer.body, 'the deregistration').textIfAny('EvalID'),
    };
  }

  async allocations(jobId: string, signal?: AbortSignal): Promise<Allocation[]> {
    const path = `${jobPath(jobId)}/allocations`;
    const answer = await this.#http.request({ method: 'GET', path, signal });
    return decodeList(answer.body, "the list of a job's allocations", decodeAllocation);
  }

  async parse(hcl: string, signal?: AbortSignal): Promise<WireJob> {
    const body = { JobHCL: hcl, Canonicalize: false };
    const answer = await this.#http.request({
      method: 'POST',
      path: '/v1/jobs/parse',
      body,
      repeatable: true,
      signal,
    });
    return decodeJob(answer.body);
  }
}

function jobPath(jobId: string): string {
  return `/v1/job/${encodeURIComponent(jobId)}`;
}

function decodeJobRow(value: unknown): JobRow {
  const row = new Fields(value, 'a job row');
  return {
    id: row.text('ID'),
    status: row.text('Status'),
    stop: row.flagOrFalse('Stop'),
    createIndex: row.number('CreateIndex'),
    modifyIndex: row.number('ModifyIndex'),
    jobModifyIndex: row.number('JobModifyIndex'),
    meta: row.texts('Meta'),
  };
}
