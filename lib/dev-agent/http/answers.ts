import type { Request, Response } from 'express';
import { HttpFailure } from '../failure.js';
import type { Cluster } from '../cluster.js';
import type { Allocation, Job } from '../state/records.js';
import { renderAllocationRow } from '../state/render.js';
import type { Store } from '../state/store.js';

/** What the routes share: headers, parameters and texts as Nomad has them. */

/** Sends JSON with the headers of a query: the index of what was read. */
export function sendQuery(response: Response, index: number, body: unknown): void {
  setQueryHeaders(response, index);
  response.status(200).json(body);
}

export function setQueryHeaders(response: Response, index: number): void {
  response.set({ 'X-Nomad-Index': String(index), 'X-Nomad-KnownLeader': 'true', 'X-Nomad-LastContact': '0' });
}

/** Sends JSON with the header of a write. */
export function sendWrite(response: Response, index: number, body: unknown): void {
  response.set('X-Nomad-Index', String(index)).status(200).json(body);
}

/** A failure of a query, which has the headers of a query too. */
export function notFound(response: Response, index: number, text: string): HttpFailure {
  setQueryHeaders(response, index);
  return new HttpFailure(404, text);
}

/** The first value of a query parameter, as Go's `Query().Get` gives it; empty where there is none. */
export function queryValue(request: Request, name: string): string {
  return new URL(request.originalUrl, 'http://agent').searchParams.get(name) ?? '';
}

export function queryFlag(request: Request, name: string): boolean {
  return ['1', 't', 'true', 'TRUE', 'True', 'T'].includes(queryValue(request, name));
}

/** The namespace of a request; `*` where it asks for all. */
export function namespaceOf(request: Request): string {
  return queryValue(request, 'namespace') || 'default';
}

/** Whether a record is of the namespace and the prefix that a list is asked for. */
export function askedFor(request: Request): (record: Pick<Job, 'Namespace' | 'ID'>) => boolean {
  const namespace = namespaceOf(request);
  const prefix = queryValue(request, 'prefix');
  return ({ Namespace, ID }) => (namespace === '*' || Namespace === namespace) && ID.startsWith(prefix);
}

/** Sends the allocations of a job or an evaluation as a list that is not paged. */
export function sendAllocations(response: Response, store: Store, allocations: readonly Allocation[]): void {
  const rows = allocations.map((one) => renderAllocationRow(one, { taskStates: true, resources: false }));
  sendQuery(response, store.indexOf('allocs'), rows);
}

/** Refuses ids that Nomad's tables could not hold. `what` begins Nomad's text. */
export function assertUuid(id: string, what: string): void {
  if (id.length !== 36)
    throw new HttpFailure(500, `${what} lookup failed: index error: UUID must be 36 characters`);
}

/** Refuses a region that is not this one. */
export function assertRegion(request: Request): void {
  if (!['', 'global'].includes(queryValue(request, 'region')))
    throw new HttpFailure(500, 'No path to region');
}

/** The JSON body of a request, parsed by hand so that its refusal reads as Go's. */
export function jsonBody(request: Request): unknown {
  const body: unknown = request.body;
  const text = Buffer.isBuffer(body) ? body.toString('utf8') : '';
  if (text.trim() === '') throw new HttpFailure(400, 'EOF');
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    throw new HttpFailure(400, /end of JSON input|Unterminated/.test(message) ? 'unexpected EOF' : message);
  }
}

/** The body where one is optional. */
export function optionalBody(request: Request): unknown {
  const body: unknown = request.body;
  return Buffer.isBuffer(body) && body.length > 0 ? jsonBody(request) : {};
}

/** A parameter of the path. */
export function pathValue(request: Request, name: string): string {
  const value: unknown = request.params[name];
  return Array.isArray(value) ? value.join('/') : typeof value === 'string' ? value : '';
}

/** What every route is given. The cluster is asked for anew with each request: a wipe replaces it. */
export interface RouteDeps {
  readonly cluster: () => Cluster;
}
