import { expect } from 'chai';
import { FakeClock, settle } from '../support/fake-clock.js';
import { eventually } from '../support/waiting.js';
import { processesWith } from './support/processes.js';
import type { RawStream } from './support/raw-agent.js';
import { RawAgent, runnerJob, sleeper } from './support/raw-agent.js';

const indexes = ({ lines }: RawStream): number[] =>
  lines.map(({ Index = 0 }) => Index).filter((index) => index > 0);

describe('faults of the embedded agent', () => {
  let raw: RawAgent;

  afterEach(() => raw.stop());

  describe('with simulated tasks', () => {
    beforeEach(async () => {
      raw = await RawAgent.start({ driver: 'simulated' });
    });

    const fault = (name: string, body: object = {}): Promise<{ status: number; body: unknown }> =>
      raw.request('POST', `/v1/agent/faults/${name}`, body);

    it('cuts the event stream, and replays to those who come again', async () => {
      await raw.run(sleeper('5-a'));
      const stream = await raw.events();
      await eventually('the replay', () => indexes(stream).length >= 5);
      await fault('cut-events');
      await stream.ended;
      const again = await raw.events();
      await eventually('the replay', () => indexes(again).length >= 5);
      expect(indexes(again)).to.deep.equal(indexes(stream));
    });

    it('loses events for everybody, for good', async () => {
      await fault('lose-events', { count: 2 });
      await raw.run(sleeper('5-a'));
      const stream = await raw.events();
      await eventually('the replay', () => stream.events.some(({ Topic }) => Topic === 'Allocation'));
      expect(stream.events.some(({ Type }) => Type === 'JobRegistered')).to.equal(false);
    });

    it('answers a status so many times to a beginning of a path', async () => {
      await fault('answer', { prefix: '/v1/jobs', status: 500, times: 2 });
      const statuses: number[] = [];
      for (let count = 0; count < 3; count += 1) statuses.push((await raw.request('GET', '/v1/jobs')).status);
      expect(statuses).to.deep.equal([500, 500, 200]);
      expect((await raw.request('GET', '/v1/nodes')).status).to.equal(200);
    });

    it('says what a cluster without a leader says', async () => {
      raw.agent.faults.answer('/v1/jobs', 500);
      expect((await raw.request('GET', '/v1/jobs')).body).to.equal('No cluster leader');
    });

    it('refuses the upgrade of an exec', async () => {
      const id = await raw.run(sleeper('5-a'));
      await fault('answer', { prefix: '/v1/client/allocation', status: 429 });
      const exec = raw.exec(id, ['true']);
      const refusal = new Promise((resolve) =>
        exec.socket.on('unexpected-response', (_request, answer) => {
          answer.resume();
          resolve(answer.statusCode);
        }),
      );
      expect(await refusal).to.equal(429);
      expect((await raw.output(id, ['true'])).exitCode).to.equal(0);
    });

    it('lists and lifts the rules in force', async () => {
      await fault('delay', { prefix: '/v1/job', time: '10ms' });
      const before = await raw.get<{ rules: object[] }>('/v1/agent/faults');
      expect(before.rules).to.deep.equal([{ prefix: '/v1/job', delayMs: 10, times: null }]);
      expect((await raw.request('DELETE', '/v1/agent/faults')).status).to.equal(204);
      expect((await raw.get<{ rules: object[] }>('/v1/agent/faults')).rules).to.deep.equal([]);
    });

    it('refuses a fault that it does not know, or cannot read', async () => {
      expect((await fault('nonsense')).status).to.equal(404);
      expect((await fault('delay', { prefix: 'jobs' })).status).to.equal(400);
      expect((await fault('lose-events', { count: 'two' })).status).to.equal(400);
      expect((await fault('kill-task')).status).to.equal(400);
    });

    it('tells whether there was a task to kill or to restart', async () => {
      const id = await raw.run(sleeper('5-a'));
      expect((await fault('restart-task', { allocation: id })).body).to.deep.equal({ done: true });
      await raw.allocation('5-a');
      expect((await fault('kill-task', { allocation: id, oom: true })).body).to.deep.equal({ done: true });
      await raw.allocation('5-a', 'failed');
      expect((await fault('kill-task', { allocation: id })).body).to.deep.equal({ done: false });
    });
  });

  it('delays answers to a beginning of a path', async () => {
    const clock = new FakeClock();
    raw = await RawAgent.start({ driver: 'simulated', clock });
    raw.agent.faults.delay('/v1/jobs', 500, 1);
    let answered = false;
    const request = raw.request('GET', '/v1/jobs').then(() => (answered = true));
    await eventually('the request to wait', () => clock.armed > 0);
    await clock.advance(499);
    await settle();
    expect(answered).to.equal(false);
    await clock.advance(1);
    await request;
  });

  it('breaks exec sockets off while their processes live on', async () => {
    raw = await RawAgent.start();
    const id = await raw.run(sleeper('5-drop'));
    const exec = raw.exec(id, ['sh', '-c', 'echo ready; sleep 7401']);
    await exec.until('ready');
    expect(raw.agent.faults.dropExecs(id)).to.equal(1);
    expect((await exec.closed).code).to.equal(1006);
    expect(processesWith('sleep\x007401')).to.have.length(1);
  });

  it('is gone for an outage, and back with all state and every process', async () => {
    raw = await RawAgent.start();
    const id = await raw.run(runnerJob('5-out', { command: 'sleep', args: ['7402'] }));
    const exec = raw.exec(id, ['sh', '-c', 'echo ready; sleep 7402'], { tty: true });
    const stream = await raw.events();
    await exec.until('ready');
    await eventually('the replay', () => indexes(stream).length >= 5);
    const before = processesWith('7402');

    const outage = raw.agent.faults.outage(1000);
    expect((await exec.closed).code).to.equal(1006);
    await stream.ended;
    const refusal: unknown = await raw.request('GET', '/v1/jobs').catch((error: unknown) => error);
    expect(String((refusal as { cause?: unknown }).cause)).to.contain('ECONNREFUSED');
    await outage;

    expect((await raw.allocation('5-out')).ID).to.equal(id);
    expect(processesWith('7402')).to.deep.equal(before);
    expect((await raw.output(id, ['echo', 'back'])).stdout).to.equal('back\n');
    const again = await raw.events();
    await eventually('the replay', () => indexes(again).length >= 5);
    expect(indexes(again)[0]).to.equal(1);
  });

  it('can be stopped in an outage', async () => {
    raw = await RawAgent.start({ driver: 'simulated' });
    const outage = raw.agent.faults.outage(3_600_000);
    await raw.stop();
    await outage;
  });

  it('forgets everything when it is wiped, and ends every task', async () => {
    raw = await RawAgent.start();
    const id = await raw.run(runnerJob('5-wipe', { command: 'sleep', args: ['7403'] }));
    const exec = raw.exec(id, ['sh', '-c', 'echo ready; sleep 7403'], { tty: true });
    await exec.until('ready');
    await raw.request('POST', '/v1/agent/faults/wipe', {});
    expect((await exec.closed).code).to.equal(1006);
    expect(processesWith('7403')).to.deep.equal([]);
    expect(await raw.get('/v1/jobs')).to.deep.equal([]);
    expect((await raw.request('GET', `/v1/allocation/${id}`)).status).to.equal(404);
    await raw.run(sleeper('5-wipe'));
  });
});
