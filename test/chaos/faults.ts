/**
 * The faults: one after the other, each drawn and timed by the dice, each over before the next begins. What happens to a
 * replica or to the agent is also what clients in the middle of something feel.
 */
import type { Dice } from './dice.js';
import type { History } from './history.js';
import type { ChaosReplica, ChaosStack } from './stack.js';

interface Scene {
  readonly stack: ChaosStack;
  readonly dice: Dice;
  readonly pause: (ms: number) => Promise<void>;
}

type Fault = (scene: Scene) => Promise<unknown>;

const replicaOf = ({ dice, stack }: Scene): ChaosReplica => dice.pick(stack.replicas);
const route = (scene: Scene, name: string, body: object): Promise<unknown> =>
  scene.stack.ask('POST', `agent/faults/${name}`, body);
/** Where requests of every kind go. */
const PREFIXES = ['/v1/job', '/v1/jobs', '/v1/client', '/v1/allocation', '/v1/event', '/v1/var'] as const;

async function onTask(scene: Scene, name: 'restart-task' | 'kill-task'): Promise<void> {
  const rows = await scene.stack.ask<{ ID: string; ClientStatus: string }[]>('GET', 'allocations');
  const running = (rows ?? []).filter(({ ClientStatus }) => ClientStatus === 'running');
  const one = running[scene.dice.between(0, Math.max(0, running.length - 1))];
  if (one) await route(scene, name, { allocation: one.ID });
}

export const FAULTS: Readonly<Record<string, Fault>> = {
  'streams cut': (scene) => route(scene, 'cut-events', {}),
  'events lost': async (scene) => {
    await route(scene, 'lose-events', { count: scene.dice.between(1, 12) });
    // Nobody can notice a loss; here the stream breaks some time after, as it does when a server drops what it held.
    await scene.pause(scene.dice.between(100, 1500));
    await route(scene, 'cut-events', {});
  },
  'slow Nomad': (scene) =>
    route(scene, 'delay', {
      prefix: scene.dice.pick(PREFIXES),
      time: `${scene.dice.between(50, 1500)}ms`,
      times: scene.dice.between(1, 20),
    }),
  'refused requests': (scene) =>
    route(scene, 'answer', {
      prefix: scene.dice.pick(PREFIXES),
      status: scene.dice.pick([429, 500]),
      times: scene.dice.between(1, 10),
    }),
  'execs dropped': (scene) => route(scene, 'drop-execs', {}),
  'task restarted': (scene) => onTask(scene, 'restart-task'),
  'task killed': (scene) => onTask(scene, 'kill-task'),
  'agent away': async (scene) => {
    const seconds = scene.dice.between(1, 3);
    await route(scene, 'outage', { seconds });
    await scene.pause(seconds * 1000);
  },
  'agent frozen': async (scene) => {
    process.kill(scene.stack.agent.pid, 'SIGSTOP');
    try {
      await scene.pause(scene.dice.between(500, 7000));
    } finally {
      process.kill(scene.stack.agent.pid, 'SIGCONT');
    }
  },
  'cable pulled': async (scene) => {
    const { proxy } = replicaOf(scene);
    proxy.silence();
    try {
      await scene.pause(scene.dice.between(500, 7000));
    } finally {
      await proxy.restore();
    }
  },
  'connections reset': (scene) => {
    replicaOf(scene).proxy.reset();
    return Promise.resolve();
  },
  'replica frozen': (scene) => replicaOf(scene).freeze(() => scene.pause(scene.dice.between(500, 6000))),
  'replica killed': (scene) => replicaOf(scene).kill(() => scene.pause(scene.dice.between(0, 2000))),
  'node drained': async (scene) => {
    const nodes = await scene.stack.ask<{ ID: string }[]>('GET', 'nodes');
    const id = nodes?.[0]?.ID;
    if (id === undefined) return;
    await scene.stack.ask('PUT', `node/${id}/drain`, { DrainSpec: { Deadline: 0 } });
    await scene.pause(scene.dice.between(200, 1500));
    const answer = { DrainSpec: null, MarkEligible: true };
    await insist(scene, async () => (await scene.stack.ask('PUT', `node/${id}/drain`, answer)) !== undefined);
  },
};

const NAMES = Object.keys(FAULTS);

/** Lets faults happen until `signal` aborts; none is under way or in force when it resolves. */
export async function haveFaults(
  scene: Scene,
  { history, signal }: { readonly history: History; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await scene.pause(scene.dice.between(300, 2000));
    const name = NAMES[scene.dice.between(0, NAMES.length - 1)] ?? '';
    if (signal.aborted) break;
    history.fault(`${name} begins`);
    await FAULTS[name]?.(scene);
    history.fault(`${name} ends`);
    history.count('faults', name);
  }
  await insist(scene, () =>
    fetch(`${scene.stack.nomad}/v1/agent/faults`, { method: 'DELETE' }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
}

/** Tries until it is done, for a while: what a fault broke has to be mended. */
async function insist({ pause }: Scene, attempt: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 50; tries += 1) {
    if (await attempt()) return;
    await pause(200);
  }
  throw new Error('the agent does not answer any more');
}
