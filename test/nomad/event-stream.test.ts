import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../lib/base/errors.js';
import { silentLogger } from '../../lib/base/log.js';
import type { EventSubscription } from '../../lib/nomad/api.js';
import type { NomadClient } from '../../lib/nomad/client.js';
import { Connection } from '../../lib/nomad/connection.js';
import { EventStream } from '../../lib/nomad/event-stream.js';
import { Http } from '../../lib/nomad/http.js';
import type { NomadEvent } from '../../lib/nomad/model.js';
import { LineSplitter } from '../../lib/nomad/ndjson.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { nomadClient, nomadClientConfig } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import type { ScriptedCall } from '../support/scripted-nomad.js';
import { eventually } from '../support/waiting.js';

const STREAM = '/v1/event/stream';

function line(index: number, jobId = 'j'): object {
  const Evaluation = { ID: `e${index}`, JobID: jobId, Status: 'pending', CreateIndex: 1, ModifyIndex: index };
  return { Index: index, Events: [{ Topic: 'Evaluation', Index: index, Payload: { Evaluation } }] };
}

/** Counts how often somebody looks at it: the only trace that a heartbeat leaves. */
class CountingClock extends FakeClock {
  reads = 0;

  override monotonicMs(): number {
    this.reads += 1;
    return super.monotonicMs();
  }
}

/** Reads in the background what a subscription yields. */
class Reader {
  readonly events: NomadEvent[] = [];
  /** The failure, or undefined where the iterator returned. */
  readonly end: Promise<unknown>;

  constructor(subscription: EventSubscription) {
    this.end = this.#read(subscription).catch((error: unknown) => error);
  }

  get indexes(): number[] {
    return this.events.map(({ index }) => index);
  }

  async #read(subscription: EventSubscription): Promise<void> {
    for await (const batch of subscription) this.events.push(...batch);
  }
}

describe('NomadClient.events', () => {
  let nomad: ScriptedNomad;
  let clock: CountingClock;
  let client: NomadClient;
  let controller: AbortController;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    clock = new CountingClock();
    client = nomadClient(nomad.address, { clock, token: 'a-token', namespace: 'runners' });
    controller = new AbortController();
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  function subscribe(from: NomadClient = client): EventSubscription {
    return from.events.subscribe({ topics: ['Allocation', 'Node'], signal: controller.signal });
  }

  async function follow(): Promise<[Reader, ScriptedCall, EventSubscription]> {
    const subscription = subscribe();
    return [new Reader(subscription), await nomad.nextStream(), subscription];
  }

  function stop(): void {
    controller.abort(new ServiceError('STOPPED', 'over'));
  }

  it('asks for whole topics, with token and namespace', async () => {
    const [, stream] = await follow();
    expect(stream.request.query.getAll('topic')).to.deep.equal(['Allocation:*', 'Node:*']);
    expect(stream.request.query.get('namespace')).to.equal('runners');
    expect(stream.request.headers).to.include({ 'x-nomad-token': 'a-token', 'accept-encoding': 'identity' });
    stop();
  });

  describe('opened', () => {
    it('resolves with the headers, before any event', async () => {
      const [reader, stream, { opened }] = await follow();
      stream.open();
      await opened;
      stop();
      expect(await reader.end).to.equal(undefined);
    });

    it('resolves without headers, which may come 35 s late [A1-12]', async () => {
      const [reader, stream, { opened }] = await follow();
      await eventually('the request to have left', () => clock.armed === 2);
      await clock.advance(500);
      await opened;
      await clock.advance(35_000);
      stream.open();
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      stop();
      expect(await reader.end).to.equal(undefined);
    });

    it('rejects as the iterator does where the stream does not come about', async () => {
      nomad.on('GET', STREAM, reply({ status: 500, body: 'No cluster leader' }));
      const subscription = subscribe();
      const opened: unknown = await subscription.opened.catch((error: unknown) => error);
      expect(opened).to.include({ code: 'NOMAD_OVERLOADED' });
      expect(await new Reader(subscription).end).to.equal(opened);
    });

    it('rejects with the reason of a caller that leaves first', async () => {
      const { opened } = subscribe();
      await nomad.nextStream();
      stop();
      expect(await opened.catch((error: unknown) => error)).to.include({ code: 'STOPPED' });
    });
  });

  describe('the end', () => {
    const ends: readonly [string, (stream: ScriptedCall) => Promise<unknown>, string][] = [
      ['an end between lines [A1-9]', (stream) => Promise.resolve(stream.end()), 'NOMAD_UNREACHABLE'],
      ['a reset [A1-9]', (stream) => Promise.resolve(stream.reset()), 'NOMAD_UNREACHABLE'],
      [
        'an end inside a line [A1-9]',
        async (stream) => {
          await stream.write('{"Index":9,"Events":[{"Topic"');
          stream.end();
        },
        'NOMAD_UNREACHABLE',
      ],
      [
        'a reset inside a line',
        async (stream) => {
          await stream.write('{"Index":9');
          stream.reset();
        },
        'NOMAD_UNREACHABLE',
      ],
      ['a line of text', (stream) => stream.write('Event stream closed by server\n'), 'NOMAD_PROTOCOL'],
      [
        'a text without a line end [A1-11]',
        async (stream) => {
          await stream.write('subscription closed by server');
          stream.end();
        },
        'NOMAD_PROTOCOL',
      ],
      ['a denial [A4-94]', (stream) => stream.write('Permission denied\n'), 'NOMAD_REFUSED'],
      ['JSON that is no event line', (stream) => stream.write('[]\n'), 'NOMAD_PROTOCOL'],
      [
        'an event of another shape',
        (stream) =>
          stream.line({ Index: 9, Events: [{ Topic: 'Evaluation', Index: 9, Payload: { Evaluation: {} } }] }),
        'NOMAD_PROTOCOL',
      ],
    ];
    for (const [what, play, code] of ends) {
      it(`is a failure after all that came before: ${what}`, async () => {
        const [reader, stream] = await follow();
        stream.open();
        for (let index = 1; index <= 3; index += 1) await stream.line(line(index));
        await eventually('the events', () => reader.events.length === 3);
        await play(stream);
        expect(await reader.end)
          .to.be.instanceOf(ServiceError)
          .and.to.include({ code });
        expect(reader.indexes).to.deep.equal([1, 2, 3]);
        await stream.closed();
      });
    }

    it('comes after what was read where nobody iterated yet', async () => {
      const subscription = subscribe();
      const stream = await nomad.nextStream();
      stream.open();
      await stream.write(`${JSON.stringify(line(1))}\nPermission denied`);
      stream.end();
      await stream.closed();
      const reader = new Reader(subscription);
      expect(await reader.end).to.include({ code: 'NOMAD_REFUSED' });
      expect(reader.indexes).to.deep.equal([1]);
    });

    it('is a refusal by status, without a second try [A4-94]', async () => {
      nomad.on('GET', STREAM, reply({ status: 403, body: 'Permission denied' }));
      expect(await new Reader(subscribe()).end).to.include({ code: 'NOMAD_REFUSED' });
      expect(nomad.requests).to.have.length(1);
    });

    it('makes the next server the first to be asked', async () => {
      const other = await ScriptedNomad.start();
      await using both = nomadClient([nomad.address, other.address], { clock });
      const reader = new Reader(subscribe(both));
      (await nomad.nextStream()).reset();
      await reader.end;
      subscribe(both);
      await other.nextStream();
      stop();
      await other.stop();
    });

    it('is quiet when the caller leaves, also in the middle of a queue', async () => {
      const subscription = subscribe();
      const stream = await nomad.nextStream();
      stream.open();
      for (let index = 1; index <= 10; index += 1) await stream.line(line(index));
      for await (const batch of subscription) {
        expect(batch).to.have.length(1);
        stop();
      }
      await stream.closed();
      expect(clock.armed).to.equal(0);
    });

    it('comes at once, and quietly, where the caller had left before', async () => {
      stop();
      const subscription = subscribe();
      expect(await new Reader(subscription).end).to.equal(undefined);
      expect(await subscription.opened.catch((error: unknown) => error)).to.include({ code: 'STOPPED' });
      expect(nomad.requests).to.deep.equal([]);
    });

    it('closes the request when the consumer breaks off', async () => {
      const subscription = subscribe();
      const stream = await nomad.nextStream();
      stream.open();
      await stream.line(line(1));
      for await (const batch of subscription) {
        expect(batch).to.have.length(1);
        break;
      }
      await stream.closed();
      expect(clock.armed).to.equal(0);
    });
  });

  describe('silence', () => {
    it('ends a stream that lives on without a word [A1-9] [A1-13]', async () => {
      const [reader, stream] = await follow();
      stream.open();
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      await clock.advance(74_999);
      expect(clock.armed).to.be.above(0);
      await clock.advance(1);
      expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
      await stream.closed();
      expect(clock.armed).to.equal(0);
    });

    it('ends one that never sends its headers', async () => {
      const [reader] = await follow();
      await clock.advance(75_000);
      expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
    });

    it('is broken by heartbeats, which yield nothing', async () => {
      const [reader, stream] = await follow();
      stream.open();
      for (let round = 0; round < 20; round += 1) {
        await clock.advance(30_000);
        const { reads } = clock;
        await stream.write('{}\n');
        await eventually('the heartbeat', () => clock.reads > reads);
      }
      await stream.line(line(1));
      await eventually('the event', () => reader.events.length === 1);
      stop();
      expect(await reader.end).to.equal(undefined);
    });
  });

  it('takes 20,000 events at once that nobody reads yet, and loses none [A1-11]', async () => {
    const subscription = subscribe();
    const stream = await nomad.nextStream();
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
    const connection = new Connection(nomadClientConfig(nomad.address), { clock, log: silentLogger });
    const http = new Http(connection);
    const { signal } = controller;
    const stream = new EventStream({ connection, http, topics: ['Job'], signal, highWater: 10 });
    stream.open();
    const call = await nomad.nextStream();
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
    await eventually('the watchdog to rest', () => clock.armed === 0);
    await clock.advance(1_000_000);
    expect(isTaken).to.equal(false);
    const reader = new Reader(stream);
    await writing;
    expect(await reader.end).to.include({ code: 'NOMAD_UNREACHABLE' });
    expect(reader.indexes).to.deep.equal(lines.map((_, index) => index));
    await http.close();
  });

  it('passes over topics that were not asked for and events without their object', async () => {
    const [reader, stream] = await follow();
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
    stop();
  });

  it('has one consumer', async () => {
    const subscription = subscribe();
    await nomad.nextStream();
    const [first, second] = [subscription, subscription].map((each) => each[Symbol.asyncIterator]());
    const waiting = first?.next();
    const failure: unknown = await second?.next().catch((error: unknown) => error);
    expect(failure).to.include({ code: 'ILLEGAL_STATE' });
    stop();
    expect(await waiting).to.include({ done: true });
  });

  it('ends with STOPPED when the client stops, and leaves nothing behind', async () => {
    const [reader, stream] = await follow();
    stream.open();
    await client.stop();
    expect(await reader.end).to.include({ code: 'STOPPED' });
    await eventually('all connections to be closed', () => nomad.connections === 0);
    await settle();
    expect(clock.armed).to.equal(0);
  });
});

describe('LineSplitter', () => {
  it('gives the same lines wherever chunks end, in the middle of a character too', () => {
    const text = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 12 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(400), { maxLength: 30 }), (parts, cuts) => {
        const lines = parts.map((part) => part.replace(/\s/g, '_'));
        const body = Buffer.from(lines.join('\n'));
        const borders = [
          0,
          ...cuts.map((cut) => Math.min(cut, body.length)).sort((a, b) => a - b),
          body.length,
        ];
        const splitter = new LineSplitter();
        const found = borders
          .slice(1)
          .flatMap((end, index) => splitter.push(body.subarray(borders[index], end)));
        expect(found).to.deep.equal(lines.slice(0, -1).filter((each) => each !== ''));
        expect(splitter.rest()).to.equal(lines.at(-1) ?? '');
      }),
    );
  });
});
