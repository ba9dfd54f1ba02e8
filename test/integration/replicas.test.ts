import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import type { TaskHandle, TaskOptions } from '../../lib/dev-agent/driver.js';
import { SimulatedDriver } from '../../lib/dev-agent/simulated/simulated-driver.js';
import { Replicas } from '../support/replicas.js';
import { SessionClient } from '../support/session-client.js';
import { eventually } from '../support/waiting.js';

const POOL = 3;

/** Runners that start only as long as a test lets them. */
class HeldDriver extends SimulatedDriver {
  gate: Promise<void> = Promise.resolve();

  override async startTask(options: TaskOptions): Promise<TaskHandle> {
    await this.gate;
    return await super.startTask(options);
  }
}

interface Claim {
  readonly status: number;
  readonly runnerId?: string;
  readonly errorCode?: string;
}

describe('several services on one Nomad', function () {
  this.timeout(120_000);

  it('serve each runner through whichever is asked', async () => {
    await using replicas = await Replicas.here();
    const [near, far] = [replicas.member(0).client, replicas.member(1).client];
    await near.openPool(POOL);
    await replicas.untilIdle(POOL);
    const runnerId = await near.claim();
    // No time for events: the other one asks Nomad.
    const socket = await far.run(runnerId, 'echo done');
    expect(socket.types.at(-1)).to.equal('exit');
    const session = await SessionClient.open(far.base, runnerId);
    session.exec('1', 'echo one');
    await session.end('1');
    expect(session.text('1').trim()).to.equal('one');
    session.client.socket.close();
    expect((await far.send('DELETE', `/runners/${runnerId}`)).status).to.equal(204);
    for (const client of [near, far]) {
      await eventually('the runner to be gone', async () => {
        const { status } = await client.send('GET', `/runners/${runnerId}/files`);
        return status === 410;
      });
    }
    await replicas.untilIdle(POOL);
  });

  it('keep a runner that is in use through either of them', async () => {
    await using replicas = await Replicas.here();
    await replicas.client.openPool(POOL);
    await replicas.untilIdle(POOL);
    const runnerId = await replicas.client.claim(0, 1);
    const socket = await replicas.client.run(runnerId, 'sleep 2; echo kept');
    expect(socket.text('stdout').trim()).to.equal('kept');
    await eventually('the runner to go after a second without use', async () => {
      const counts = await Promise.all(replicas.members.map(({ client }) => client.statistics()));
      return counts.every((each) => each?.usedRunners === 0);
    });
  });

  it('hand out a pool of 100 to 200 clients who claim at once: 100 runners, and 100 refusals', async () => {
    const driver = new HeldDriver({ clock: systemClock });
    let open = (): void => undefined;
    await using replicas = await Replicas.here({ driver, settings: { SERAI_EXECUTION_WARM: 'off' } });
    await replicas.client.openPool(100);
    await replicas.untilIdle(100);
    // What is refilled is not there in time.
    driver.gate = new Promise((resolve) => (open = resolve));
    const asked = performance.now();
    const claims = await Promise.all(
      Array.from({ length: 200 }, async (): Promise<Claim> => {
        const response = await replicas.client.send('POST', '/runners', { executionEnvironmentId: 0 });
        return { status: response.status, ...((await response.json()) as object) };
      }),
    );
    console.log(`      200 claims were answered within ${Math.round(performance.now() - asked)} ms`);
    open();
    const refused = claims.filter(({ status }) => status !== 200);
    expect(new Set(claims.flatMap(({ runnerId }) => runnerId ?? [])).size).to.equal(100);
    expect(refused).to.have.length(100);
    for (const each of refused) expect(each).to.include({ status: 500, errorCode: 'NOMAD_OVERLOAD' });
  });
});
