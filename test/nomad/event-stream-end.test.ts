import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { nomadClient } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import type { ScriptedCall } from '../support/scripted-nomad.js';
import { eventually } from '../support/waiting.js';
import { EventBench, line, Reader } from './support/event-reader.js';

const STREAM = '/v1/event/stream';

describe('the end of NomadClient.events', () => {
  let bench: EventBench;

  beforeEach(async () => {
    bench = await EventBench.open();
  });

  afterEach(() => bench.close());

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
      const [reader, stream] = await bench.follow();
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
    const subscription = bench.subscribe();
    const stream = await bench.nomad.nextStream();
    stream.open();
    await stream.write(`${JSON.stringify(line(1))}\nPermission denied`);
    stream.end();
    await stream.closed();
    const reader = new Reader(subscription);
    expect(await reader.end).to.include({ code: 'NOMAD_REFUSED' });
    expect(reader.indexes).to.deep.equal([1]);
  });

  it('is a refusal by status, without a second try [A4-94]', async () => {
    bench.nomad.on('GET', STREAM, reply({ status: 403, body: 'Permission denied' }));
    expect(await new Reader(bench.subscribe()).end).to.include({ code: 'NOMAD_REFUSED' });
    expect(bench.nomad.requests).to.have.length(1);
  });

  it('makes the next server the first to be asked', async () => {
    const other = await ScriptedNomad.start();
    await using both = nomadClient([bench.nomad.address, other.address], { clock: bench.clock });
    const reader = new Reader(bench.subscribe(both));
    (await bench.nomad.nextStream()).reset();
    await reader.end;
    bench.subscribe(both);
    await other.nextStream();
    bench.stop();
    await other.stop();
  });

  it('is quiet when the caller leaves, also in the middle of a queue', async () => {
    const subscription = bench.subscribe();
    const stream = await bench.nomad.nextStream();
    stream.open();
    for (let index = 1; index <= 10; index += 1) await stream.line(line(index));
    for await (const batch of subscription) {
      expect(batch).to.have.length(1);
      bench.stop();
    }
    await stream.closed();
    expect(bench.clock.armed).to.equal(0);
  });

  it('comes at once, and quietly, where the caller had left before', async () => {
    bench.stop();
    const subscription = bench.subscribe();
    expect(await new Reader(subscription).end).to.equal(undefined);
    expect(await subscription.opened.catch((error: unknown) => error)).to.include({ code: 'STOPPED' });
    expect(bench.nomad.requests).to.deep.equal([]);
  });

  it('closes the request when the consumer breaks off', async () => {
    const subscription = bench.subscribe();
    const stream = await bench.nomad.nextStream();
    stream.open();
    await stream.line(line(1));
    for await (const batch of subscription) {
      expect(batch).to.have.length(1);
      break;
    }
    await stream.closed();
    expect(bench.clock.armed).to.equal(0);
  });
});
