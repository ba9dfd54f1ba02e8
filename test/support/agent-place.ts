import path from 'node:path';
import { systemClock } from '../../lib/base/clock.js';
import { silentLogger } from '../../lib/base/log.js';
import type { ExecutionConfig } from '../../lib/config/config.js';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import type { DevAgentOptions } from '../../lib/dev-agent/agent.js';
import type { Executions } from '../../lib/execution/executions.js';
import { NomadClient } from '../../lib/nomad/client.js';
import { TestRunner } from './claimed-runner.js';
import { startExecutions } from './executions.js';
import { nomadClientConfig } from './nomad-client.js';
import { eventually } from './waiting.js';

/** Executions over the real client and the embedded agent: all of the chain but pool and API. */
export interface AgentPlace extends AsyncDisposable {
  readonly executions: Executions;
  readonly client: NomadClient;
  /** Names in /tmp of the sessions with a terminal so far. */
  readonly sessionFolders: string[];
  /** Starts one more task and claims it. */
  claim(): Promise<TestRunner>;
}

export interface AgentPlaceOptions {
  readonly driver: DevAgentOptions['driver'];
  readonly execution?: Partial<ExecutionConfig>;
}

export async function startAgentPlace({ driver, execution = {} }: AgentPlaceOptions): Promise<AgentPlace> {
  const agent = new DevAgent({ driver });
  await agent.start();
  const client = new NomadClient(nomadClientConfig(agent.address), { clock: systemClock, log: silentLogger });
  const sessionFolders: string[] = [];
  const openExec: NomadClient['openExec'] = (options) => {
    if (options.tty) sessionFolders.push(path.basename(options.command.at(-1) ?? ''));
    return client.openExec(options);
  };
  const executions = await startExecutions({ nomad: { openExec }, execution });
  let count = 0;
  return {
    executions,
    client,
    sessionFolders,
    async claim() {
      count += 1;
      const id = `1-task-${count}`;
      await client.jobs.register(taskJob(id));
      const running = async (): Promise<string | undefined> =>
        (await client.jobs.allocations(id)).find(({ clientStatus }) => clientStatus === 'running')?.id;
      let allocation: string | undefined;
      await eventually('a running task', async () => (allocation = await running()) !== undefined);
      return new TestRunner({ environment: { FROM_ENVIRONMENT: 'yes' } }, allocation);
    },
    async [Symbol.asyncDispose]() {
      await executions.stop();
      await client.stop();
      await agent.stop();
    },
  };
}

function taskJob(id: string): Parameters<NomadClient['jobs']['register']>[0] {
  return {
    ID: id,
    Name: id,
    Type: 'batch',
    Datacenters: ['dc1'],
    TaskGroups: [
      {
        Name: 'default-group',
        Count: 1,
        Tasks: [
          {
            Name: 'default-task',
            Driver: 'docker',
            Config: { image: 'image', command: 'sleep', args: ['infinity'] },
            Env: { FROM_IMAGE: 'yes' },
            Resources: { CPU: 20, MemoryMB: 64 },
          },
        ],
      },
    ],
  };
}
