import { expect } from 'chai';
import type { ErrorCode } from '../../../lib/base/errors.js';
import { ServiceError } from '../../../lib/base/errors.js';
import { allocationId } from '../../../lib/base/ids.js';
import type { NomadClient } from '../../../lib/nomad/client.js';
import type { Http } from '../../../lib/nomad/http.js';
import type { Allocation } from '../../../lib/nomad/model.js';
import type { WireJob } from '../../../lib/nomad/wire.js';
import type { HttpTranscript } from './transcripts.js';

/**
 * For each recorded exchange the call of the client that makes it, and what the client has to make of the answer.
 * Endpoints without a method of their own go through the HTTP core that all methods share.
 */
export interface ReplayContext {
  readonly client: NomadClient;
  readonly http: Http;
  readonly transcript: HttpTranscript;
}

export type Replay = (context: ReplayContext) => Promise<void>;

export async function expectCode(work: Promise<unknown>, code: ErrorCode, text: string): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).to.be.instanceOf(ServiceError);
  expect(error).to.include({ code });
  expect((error as Error).message).to.contain(text);
}

/** The last segment of the recorded path. */
function idIn({ request }: HttpTranscript): string {
  return new URL(request.path, 'http://nomad').pathname.split('/').at(-1) ?? '';
}

function jobIn({ request }: HttpTranscript): WireJob {
  return (request.body as { Job?: WireJob } | undefined)?.Job ?? { ID: 'x' };
}

export function registers(evaluationId: string, jobModifyIndex: number, enforceIndex?: number): Replay {
  return async ({ client, transcript }) => {
    const answer = client.jobs.register(
      jobIn(transcript),
      enforceIndex === undefined ? {} : { enforceIndex },
    );
    expect(await answer).to.deep.equal({ evaluationId, jobModifyIndex, warnings: '' });
  };
}

export function registerFails(code: ErrorCode, text: string, enforceIndex?: number): Replay {
  return ({ client, transcript }) =>
    expectCode(
      client.jobs.register(jobIn(transcript), enforceIndex === undefined ? {} : { enforceIndex }),
      code,
      text,
    );
}

export function lists(
  query: { prefix?: string; filter?: string; meta?: boolean },
  ids: readonly string[],
): Replay {
  return async ({ client }) => {
    expect((await client.jobs.list(query)).map(({ id }) => id)).to.deep.equal(ids);
  };
}

export function listFails(code: ErrorCode, text: string, filter?: string): Replay {
  return ({ client }) => expectCode(client.jobs.list(filter === undefined ? {} : { filter }), code, text);
}

interface ExpectedAllocation extends Partial<Allocation> {
  readonly task?: Readonly<Record<string, unknown>>;
  /** Types of its task events, with the exit code and the mark of memory where there are any. */
  readonly events?: readonly string[];
}

export function looksUp(expected: ExpectedAllocation): Replay {
  return async ({ client, transcript }) => {
    const { task, events, ...rest } = expected;
    const allocation = await client.allocations.get(allocationId(idIn(transcript)));
    expect(allocation).to.deep.include({ id: idIn(transcript), ports: [], desiredStatus: 'run', ...rest });
    const state = allocation?.tasks?.['default-task'];
    expect(state).to.include({ ...task });
    if (!events) return;
    expect(
      state?.events.map(({ type, exitCode, oomKilled }) =>
        [type, exitCode, oomKilled ? 'oom' : undefined].filter((part) => part !== undefined).join(' '),
      ),
    ).to.deep.equal(events);
  };
}

export const STARTED = ['Received', 'Task Setup', 'Started'];
export const RUNNING: ExpectedAllocation = {
  clientStatus: 'running',
  description: 'Tasks are running',
  task: { state: 'running', failed: false, restarts: 0, lastRestart: undefined },
  events: STARTED,
};
export const FAILED: ExpectedAllocation = {
  clientStatus: 'failed',
  description: 'Failed tasks',
  task: { state: 'dead', failed: true },
};

export function evaluates(expected: Readonly<Record<string, unknown>>): Replay {
  return async ({ client, transcript }) => {
    const evaluation = await client.evaluations.get(idIn(transcript));
    expect(evaluation).to.deep.include({ id: idIn(transcript), nextEvaluation: undefined, ...expected });
  };
}

/** An exchange that no method makes: the core passes the body on. */
export const passesThrough: Replay = async ({ http, transcript: { request, response } }) => {
  const url = new URL(request.path, 'http://nomad');
  const { body } = await http.request({
    method: request.method as 'GET',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body: request.body,
  });
  expect(body).to.deep.equal(response.body);
};

export function coreFails(code: ErrorCode, text: string): Replay {
  return ({ http, transcript: { request } }) =>
    expectCode(
      http.request({ method: request.method as 'GET', path: request.path, body: request.body }),
      code,
      text,
    );
}

export const isAbsent =
  (look: (client: NomadClient, id: string) => Promise<unknown>): Replay =>
  async ({ client, transcript }) => {
    expect(await look(client, idIn(transcript))).to.equal(undefined);
  };
