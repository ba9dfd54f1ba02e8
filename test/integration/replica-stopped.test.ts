import { expect } from 'chai';
import { Replicas } from '../support/replicas.js';
import { eventually } from '../support/waiting.js';

describe('a replica that is stopped', function () {
  this.timeout(60_000);

  it('ends what runs before another takes its runners, whatever that is asked meanwhile', async () => {
    await using replicas = await Replicas.here({ settings: { SERAI_SHUTDOWN_GRACE_SECONDS: '20' } });
    const [stopping, staying] = [replicas.member(0), replicas.member(1)];
    await stopping.client.openPool(2);
    await replicas.untilIdle(2);
    const runnerId = await stopping.client.claim();
    const near = await stopping.client.open(runnerId, 'echo begun; sleep 3; echo kept | tee file');
    const far = await staying.client.open(runnerId, 'echo begun; sleep 3; echo kept');
    for (const each of [near, far])
      await eventually('the command to run', () => each.text('stdout').includes('begun'));

    let hasStopped = false;
    const stopped = stopping.service.stop().then(() => (hasStopped = true));
    const answers = new Set<number>();
    for (const { client } of [staying, stopping]) {
      const { status, headers } = await client.send('GET', `/runners/${runnerId}/files`);
      expect(headers.get('retry-after')).not.to.equal(null);
      answers.add(status);
    }
    expect([...answers]).to.deep.equal([503]);
    expect(hasStopped).to.equal(false);
    for (const each of [near, far]) {
      expect(await each.closed()).to.equal(1000);
      expect(each.messages.at(-1)).to.include({ type: 'exit', data: 0 });
      expect(each.text('stdout')).to.match(/begun\s+kept/);
    }
    await stopped;
    const after = await staying.client.run(runnerId, 'cat file');
    expect(after.text('stdout').trim()).to.equal('kept');
  });
});
