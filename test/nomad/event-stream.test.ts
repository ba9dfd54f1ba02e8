import { expect } from 'chai';
import { silentLogger } from '../../lib/base/log.js';
import { Connection } from '../../lib/nomad/connection.js';
import { EventStream } from '../../lib/nomad/event-stream.js';
import { Http } from '../../lib/nomad/http.js';
import { settle } from '../support/fake-clock.js';
import { nomadClientConfig } from '../support/nomad-client.js';
import { reply } from '../support/scripted-nomad.js';
import { eventually } from '../support/waiting.js';
import { EventBench, line, Reader } from './support/event-reader.js';

const STREAM = '/v1/event/stream';

describe('NomadClient.events', () => {
  let bench: EventBench;

  beforeEach(async () => {
    bench = await EventBench.open();
  });

  afterEach(() => bench.close());

  it('asks for whole topics, with token and namespace', async () => {
    const [, stream] = await bench.follow();
    expect(stream.request.query.getAll('topic')).to.deep.equal(['Allocation:*', 'Node:*']);
    expect(stream.request.query.get('namespace')).to.equal('runners');
    expect(stream.request.headers).to.include({ 'x-nomad-token': 'a-token', 'accept-encoding': 'identity' });
    bench.stop();
  });

  describe('opened', () => {
    it('resolves with the headers, before any event', async () => {
      const [reader, stream, { opened }] = await bench.follow();
      stream.open();
      await opened;
      bench.stop();
      expect(await reader.end).to.equal(undefined);
    });

    it('resolves without headers, which may come 35 s late [A1-12]', async () => {
      const [reader, stream, { opened }] = await bench.follow();
      await eventually('the request to have left', () => bench.clock.armed === 2);
      await bench.clock.advance(500);
      await opened;
      await bench.clock.advance(35_000);
      stream.open();
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      bench.stop();
      expect(await reader.end).to.equal(undefined);
    });

    it('rejects as the iterator does where the stream does not come about', async () => {
      bench.nomad.on('GET', STREAM, reply({ status: 500, body: 'No cluster leader' }));
      const subscription = bench.subscribe();
      const opened: unknown = await subscription.opened.catch((error: unknown) => error);
      expect(opened).to.include({ code: 'NOMAD_OVERLOADED' });
      expect(await new Reader(subscription).end).to.equal(opened);
    });

    it('rejects with the reason of a caller that leaves first', async () => {
      const { opened } = bench.subscribe();
      await bench.nomad.nextStream();
      bench.stop();
      expect(await opened.catch((error: unknown) => error)).to.include({ code: 'STOPPED' });
    });
  });

  describe('silence', () => {
    it('ends a stream that lives on without a word [A1-9] [A1-13]', async () => {
      const [reader, stream] = await bench.follow();
      stream.open();
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      await bench.clock.advance(74_999);
      expect(bench.clock.armed).to.be.above(0);
      await bench.clock.advance(1);
      expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
      await stream.closed();
      expect(bench.clock.armed).to.equal(0);
    });

    it('ends one that never sends its headers', async () => {
      const [reader] = await bench.follow();
      await bench.clock.advance(75_000);
      expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
    });

    it('is broken by heartbeats, which yield nothing', async () => {
      const [reader, stream] = await bench.follow();
      stream.open();
      for (let round = 0; round < 20; round += 1) {
        await bench.clock.advance(30_000);
        const { reads } = bench.clock;
        await stream.write('{}\n');
        await eventually('the heartbeat', () => bench.clock.reads > reads);
      }
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      bench.stop();
      expect(await reader.end).to.equal(undefined);
    });
  });

  it('takes 20,000 events at once that nobody reads yet, and loses none [A1-11]', async () => {
    const subscription = bench.subscribe();
    const stream = await bench.nomad.nextStream();
    stream.open();
    const lines = Array.from({ length: 20_000 }, (_, index) => `${JSON.stringify(line(index))}\n`);
    await stream.write(lines.join(''));
    stream.end();
    await stream.closed();
    const reader = new Reader(subscription);
    await reader.end;
    expect(reader.indexes).to.deep.equal(lines.map((_, index) => index));
  });

  it('stops reading for a consumer that hangs, which is no silence, and loses nothing [A1-11]', async () => {
    const connection = new Connection(nomadClientConfig(bench.nomad.address), {
      clock: bench.clock,
      log: silentLogger,
    });
    const http = new Http(connection);
    const { signal } = bench.controller;
    const stream = new EventStream({ connection, http, topics: ['Job'], signal, highWater: 10 });
    stream.open();
    const call = await bench.nomad.nextStream();
    call.open();
    const lines = Array.from(
      { length: 20_000 },
      (_, index) => `${JSON.stringify(line(index, 'x'.repeat(1000)))}\n`,
    );
    let isTaken = false;
    const writing = call.write(lines.join('')).then(() => {
      isTaken = true;
      call.end();
    });
    await eventually('the watchdog to rest', () => bench.clock.armed === 0);
    await bench.clock.advance(1_000_000);
    expect(isTaken).to.equal(false);
    const reader = new Reader(stream);
    await writing;
    expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
    expect(reader.indexes).to.deep.equal(lines.map((_, index) => index));
    await http.close();
  });

  it('passes over topics that were not asked for and events without their object', async () => {
    const [reader, stream] = await bench.follow();
    stream.open();
    await stream.line({
      Index: 5,
      Events: [
        { Topic: 'Deployment', Index: 5, Payload: { Deployment: {} } },
        { Topic: 'Job', Index: 5, Payload: { Job: null } },
        { Topic: 'Job', Index: 5, Payload: null },
      ],
    });
    await stream.line(line(6));
    await eventually('the event', () => reader.events.length === 1);
    expect(reader.indexes).to.deep.equal([6]);
    bench.stop();
  });

  it('has one consumer', async () => {
    const subscription = bench.subscribe();
    await bench.nomad.nextStream();
    const [first, second] = [subscription, subscription].map((each) => each[Symbol.asyncIterator]());
    const waiting = first?.next();
    const failure: unknown = await second?.next().catch((error: unknown) => error);
    expect(failure).to.include({ code: 'ILLEGAL_STATE' });
    bench.stop();
    expect(await waiting).to.include({ done: true });
  });

  it('ends with STOPPED when the client stops, and leaves nothing behind', async () => {
    const [reader, stream] = await bench.follow();
    stream.open();
    await bench.client.stop();
    expect(await reader.end).to.include({ code: 'STOPPED' });
    await eventually('all connections to be closed', () => bench.nomad.connections === 0);
    await settle();
    expect(bench.clock.armed).to.equal(0);
  });
});
