import type { NomadNodes } from './api.js';
import { decodeList, Fields, oneOf } from './decode.js';
import type { Http } from './http.js';
import type { NomadNode } from './model.js';

/** `/v1/nodes`. */
export class Nodes implements NomadNodes {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list(signal?: AbortSignal): Promise<NomadNode[]> {
    return this.#http.list({ method: 'GET', path: '/v1/nodes', signal }, (body) =>
      decodeList(body, 'the list of nodes', decodeNode),
    );
  }
}

const STATUSES: readonly NomadNode['status'][] = ['initializing', 'ready', 'down', 'disconnected'];

/** One node: a row of the list has `Address` and `Drain`, an event has `HTTPAddr` and `DrainStrategy`. */
export function decodeNode(value: unknown): NomadNode {
  const node = new Fields(value, 'a node');
  return {
    id: node.text('ID'),
    name: node.textOrEmpty('Name'),
    address: node.textIfAny('Address') ?? withoutPort(node.textOrEmpty('HTTPAddr')),
    // A status that is not known here is neither good enough for new work nor a reason to give work up.
    status: oneOf(node.text('Status'), STATUSES, 'disconnected'),
    eligible: node.text('SchedulingEligibility') === 'eligible',
    draining: node.flagOrFalse('Drain') || node.child('DrainStrategy') !== undefined,
    modifyIndex: node.number('ModifyIndex'),
  };
}

function withoutPort(hostAndPort: string): string {
  return hostAndPort.replace(/:[0-9]+$/, '').replace(/^\[|\]$/g, '');
}
