import type { Router } from 'express';
import type { RouteDeps } from './answers.js';
import { sendQuery } from './answers.js';

export interface AgentInfoDeps extends RouteDeps {
  /** What the agent says of itself beyond what a real one says. */
  readonly self: () => { readonly driver: string; readonly isolates: boolean; readonly openExecs: number };
}

/** The Nomad whose answers are imitated. */
export const NOMAD_VERSION = '1.6.3';
const LEADER = '127.0.0.1:4647';

/** `/v1/agent/…`, `/v1/status/leader`, `/v1/regions`, `/v1/namespaces`. */
export function addAgentRoutes(router: Router, { cluster, self }: AgentInfoDeps): void {
  router.get('/v1/agent/health', (_request, response) => {
    const ok = { message: 'ok', ok: true };
    response.status(200).json({ client: ok, server: ok });
  });

  router.get('/v1/agent/self', (_request, response) => {
    const { store, client } = cluster();
    const { node } = store;
    response.status(200).json({
      config: {
        Version: {
          BuildDate: null,
          Revision: '',
          Version: NOMAD_VERSION,
          VersionMetadata: '',
          VersionPrerelease: '',
        },
        Region: 'global',
        Datacenter: 'dc1',
      },
      member: { Name: `${node.Name}.global`, Status: 'alive' },
      stats: {
        nomad: { leader: 'true', leader_addr: LEADER, bootstrap: 'true', known_regions: '1', server: 'true' },
        client: {
          node_id: node.ID,
          known_servers: LEADER,
          num_allocations: String(client.running.length),
        },
      },
      embedded: self(),
    });
  });

  router.get('/v1/status/leader', (_request, response) => {
    response.status(200).json(LEADER);
  });

  router.get('/v1/regions', (_request, response) => {
    response.status(200).json(['global']);
  });

  router.get('/v1/namespaces', (_request, response) => {
    const namespaces = cluster().namespaces.map((Name) => ({
      Capabilities: null,
      CreateIndex: 1,
      Description: Name === 'default' ? 'Default shared namespace' : '',
      Hash: '',
      Meta: null,
      ModifyIndex: 1,
      Name,
      NodePoolConfiguration: null,
      Quota: '',
    }));
    sendQuery(response, 1, namespaces);
  });
}
