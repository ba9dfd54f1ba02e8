import { expect } from 'chai';
import type { WireJob } from '../../lib/nomad/wire.js';
import type { ReplicaProcess } from '../support/replicas.js';
import { Replicas } from '../support/replicas.js';
import { SessionClient } from '../support/session-client.js';
import { upgradeStatus } from '../support/upgrade-status.js';
import { eventually } from '../support/waiting.js';

/** Whom Nomad knows as the owner of a runner. */
async function ownerOf(replicas: Replicas<ReplicaProcess>, runnerId: string): Promise<string | undefined> {
  const response = await fetch(`${replicas.agent.address}/v1/job/${runnerId}`);
  const job = (await response.json()) as WireJob;
  return job.TaskGroups?.find(({ Name }) => Name === 'config')?.Meta?.['owner'];
}

describe('a replica that is killed', function () {
  this.timeout(120_000);

  it('loses its runners to the other one as they are asked for, and finds the rest when it is back', async () => {
    await using replicas = await Replicas.processes();
    const [dying, staying] = [replicas.member(0), replicas.member(1)];
    await dying.client.openPool(4);
    await replicas.untilIdle(4);
    const taken = await dying.client.claim();
    const kept = await dying.client.claim();
    await dying.client.run(taken, 'echo before > file');
    const prepared = await staying.client.prepare(taken, 'true');
    const running = await staying.client.open(taken, 'echo started; sleep 100');
    await eventually('the command to run', () => running.text('stdout').includes('started'));
    const session = await SessionClient.open(staying.client.base, kept);
    session.exec('1', 'echo started; sleep 100');
    await eventually('the command to run', () => session.text('1').includes('started'));

    await dying.kill();
    const killed = performance.now();
    const after = await staying.client.run(taken, 'cat file');
    const servedMs = Math.round(performance.now() - killed);
    console.log(`      a command ran through the other replica ${servedMs} ms after the end of the first`);
    expect(after.text('stdout').trim()).to.equal('before');
    expect(servedMs).to.be.lessThan(5000);
    expect(await running.closed()).to.equal(1000);
    expect(running.messages.at(-1)).to.include({ type: 'error' });
    expect(await session.closed()).to.equal(1012);
    expect(await session.end('1')).to.include({ type: 'error', id: '1' });
    expect(await upgradeStatus(prepared, {})).to.equal(404);
    expect(await ownerOf(replicas, taken)).to.equal(staying.name);
    expect(await ownerOf(replicas, kept)).to.equal(dying.name);

    await dying.start();
    await dying.untilReady();
    // Each has one of the two, and both lead to both.
    for (const { client } of [dying, staying]) {
      for (const runnerId of [taken, kept]) {
        const socket = await client.run(runnerId, 'echo again');
        expect(socket.text('stdout').trim()).to.equal('again');
      }
    }
    expect(await ownerOf(replicas, taken)).to.equal(staying.name);
    expect(await ownerOf(replicas, kept)).to.equal(dying.name);
  });
});
