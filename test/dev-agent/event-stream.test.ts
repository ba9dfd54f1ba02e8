import { expect } from 'chai';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { FakeClock } from '../support/fake-clock.js';
import { eventually } from '../support/waiting.js';
import type { RawStream } from './support/raw-agent.js';
import { RawAgent, sleeper } from './support/raw-agent.js';
import { jobOf } from './support/event-words.js';

describe('event stream of the embedded agent, as an HTTP answer', () => {
  let raw: RawAgent;

  beforeEach(async () => {
    raw = await RawAgent.start({ driver: 'simulated' });
  });
  afterEach(() => raw.stop());

  const indexes = ({ lines }: RawStream): number[] =>
    lines.map(({ Index = 0 }) => Index).filter((index) => index > 0);

  /** Registers a job and waits until everything of it was told. */
  async function settled(id: string): Promise<void> {
    await raw.run(sleeper(id));
  }

  it('begins with a heartbeat and what the buffer holds', async () => {
    await settled('8-a');
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 5);
    expect(stream.lines[0]).to.deep.equal({});
    expect(indexes(stream)[0]).to.equal(1);
    await stream.close();
  });

  it('holds the last 100 lines', async () => {
    for (let count = 0; count < 30; count += 1) await settled(`8-${count}`);
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 100);
    const all = indexes(stream);
    const last = await raw.events(`?index=${all.at(-1)}`);
    await eventually('the last line', () => indexes(last).length > 0);
    expect(all).to.have.length(100);
    expect(indexes(last)).to.deep.equal([all.at(-1)]);
    await stream.close();
    await last.close();
  });

  it('begins at an index: with the nearest line where it is gone or still to come', async () => {
    await settled('8-a');
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 5);
    const all = indexes(stream);
    const from = await raw.events('?index=3');
    const future = await raw.events('?index=1000');
    await eventually('both replays', () => indexes(from).length > 0 && indexes(future).length > 0);
    expect(indexes(from)).to.deep.equal(all.filter((index) => index >= 3));
    expect(indexes(future)).to.deep.equal([all.at(-1)]);
    for (const one of [stream, from, future]) await one.close();
  });

  it('gives the topics that were asked for, whole or by key', async () => {
    const jobs = await raw.events('?topic=Job');
    const one = await raw.events('?topic=Evaluation:8-b&topic=Allocation:8-b');
    await settled('8-a');
    await settled('8-b');
    await eventually('the events', () => one.events.length >= 5 && jobs.events.length >= 4);
    expect(new Set(jobs.events.map(({ Topic }) => Topic))).to.deep.equal(new Set(['Job']));
    expect(new Set(one.events.map(jobOf))).to.deep.equal(new Set(['8-b']));
    await jobs.close();
    await one.close();
  });

  it('gives the events of one namespace, or of all', async () => {
    const other = new RawAgent({ driver: 'simulated', namespaces: ['default', 'runners'] });
    await other.agent.start();
    const streams = [
      await other.events(),
      await other.events('?namespace=runners'),
      await other.events('?namespace=*'),
    ];
    await other.request('PUT', '/v1/jobs?namespace=runners', { Job: sleeper('8-ns') });
    await other.register(sleeper('8-default'));
    await other.allocation('8-default');
    const seen = (stream: RawStream): string[] =>
      [...new Set(stream.events.map(jobOf))].filter((id) => id !== undefined).sort();
    await eventually('the events', () => (streams[2]?.events.length ?? 0) >= 10);
    expect(streams.map(seen)).to.deep.equal([['8-default'], ['8-ns'], ['8-default', '8-ns']]);
    await other.stop();
  });

  it('refuses a topic that it cannot read', async () => {
    const answer = await raw.request('GET', '/v1/event/stream?topic=a:b:c');
    expect(answer.status).to.equal(400);
    expect(answer.body).to.match(/Invalid key value pair for topic, topic: a:b:c/);
    expect((await raw.request('GET', '/v1/event/stream?index=x')).status).to.equal(400);
  });

  it('sends a heartbeat every 30 s', async () => {
    const clock = new FakeClock();
    await using agent = new DevAgent({ driver: 'simulated', clock });
    await agent.start();
    const response = await fetch(`${agent.address}/v1/event/stream?topic=Job`);
    const reader = response.body?.getReader();
    const text = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await text()).to.equal('{}\n');
    await clock.advance(29_999);
    await clock.advance(1);
    expect(await text()).to.equal('{}\n');
    await clock.advance(30_000);
    expect(await text()).to.equal('{}\n');
    await reader?.cancel();
  });

  it('forgets its listeners when their connections end', async () => {
    const stream = await raw.events();
    await stream.close();
    await eventually('the end of the stream', () => raw.agent.openStreams === 0);
  });
});
