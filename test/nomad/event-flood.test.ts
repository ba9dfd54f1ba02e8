import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import { EventBench, line, Reader } from './support/event-reader.js';

const EVENTS = 20_000;

describe('NomadClient.events in a flood', () => {
  let bench: EventBench;

  beforeEach(async () => {
    bench = await EventBench.open();
  });

  afterEach(() => bench.close());

  it('keeps 20,000 events for a reader that comes late, all of them and in order', async () => {
    const subscription = bench.subscribe();
    const stream = await bench.nomad.nextStream();
    stream.open();
    await subscription.opened;
    const wanted = Array.from({ length: EVENTS }, (_, n) => n + 1);
    const lines = wanted.map((index) => `${JSON.stringify(line(index))}\n`).join('');
    await stream.write(lines); // resolves when the client has read it to the last of it, or nearly so
    const reader = new Reader(subscription);
    await eventually('all events', () => reader.events.length === EVENTS);
    expect(reader.indexes).to.deep.equal(wanted);
    bench.stop();
    expect(await reader.end).to.equal(undefined);
  });
});
