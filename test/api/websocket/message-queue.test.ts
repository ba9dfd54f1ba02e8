import { expect } from 'chai';
import fc from 'fast-check';
import { MessageQueue } from '../../../lib/api/websocket/message-queue.js';
import { Outbox } from '../../../lib/api/websocket/outbox.js';
import type { PeerMessage } from '../../../lib/protocol/websocket.js';
import { FakeClock, settle } from '../../support/fake-clock.js';

/** A socket whose client reads only when told to. */
class StuckSocket {
  readonly frames: { text: string; sent: (error?: Error) => void }[] = [];
  readonly read: PeerMessage[] = [];
  /** How often something was written at once. */
  writes = 0;

  get bufferedAmount(): number {
    return this.frames.reduce((sum, { text }) => sum + text.length, 0);
  }

  send(text: string, sent: (error?: Error) => void): void {
    this.frames.push({ text, sent });
  }

  cork(): void {
    this.writes += 1;
  }

  uncork(): void {
    return;
  }

  readAll(): void {
    for (let frame = this.frames.shift(); frame; frame = this.frames.shift()) {
      this.read.push(JSON.parse(frame.text) as PeerMessage);
      frame.sent();
    }
  }
}

/** The queue of an execution that has a socket to itself. */
function queueOn(socket: StuckSocket, clock = new FakeClock()): { outbox: Outbox; queue: MessageQueue } {
  const outbox = new Outbox(socket, socket, clock);
  const queue = new MessageQueue(outbox);
  queue.beginWith({ type: 'start' });
  return { outbox, queue };
}

describe('MessageQueue', () => {
  it('keeps every character, the order of streams, one start and one end, whatever comes when', async () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({
          stream: fc.constantFrom('stdout', 'stderr'),
          text: fc.string({ unit: 'grapheme', maxLength: 20 }),
        }),
        fc.constantFrom('turn', 'start', 'read'),
      ),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (script) => {
        const socket = new StuckSocket();
        const { outbox, queue } = queueOn(socket);
        const given: { stream: string; text: string }[] = [];
        for (const step of script) {
          if (step === 'turn') await settle();
          else if (step === 'start') queue.start();
          else if (step === 'read') socket.readAll();
          else {
            queue.output(step.stream, step.text);
            given.push(step);
          }
        }
        queue.end({ type: 'exit', data: 0 });
        queue.end({ type: 'timeout' });
        queue.output('stdout', 'late');
        queue.tell({ type: 'refused', data: 'late' });
        let taken = 0;
        outbox.flush();
        outbox.whenTaken(() => (taken += 1));
        socket.readAll();
        expect(taken).to.equal(1);
        expect(socket.read[0]).to.deep.equal({ type: 'start' });
        expect(socket.read.at(-1)).to.deep.equal({ type: 'exit', data: 0 });
        const told = socket.read.slice(1, -1).map((message) => {
          if (message.type === 'stdout' || message.type === 'stderr') {
            return { stream: message.type, text: message.data };
          }
          throw new Error(`${message.type} in the middle`);
        });
        expect(joined(told)).to.deep.equal(joined(given));
      }),
      { numRuns: 200 },
    );
  });

  it('resolves drained only when little waits, and at once when the client is gone', async () => {
    const socket = new StuckSocket();
    const { outbox, queue } = queueOn(socket);
    while (queue.output('stdout', 'x'.repeat(100_000)));
    let drained = 0;
    void queue.drained().then(() => (drained += 1));
    socket.frames.shift()?.sent();
    await settle();
    expect(drained).to.equal(0);
    socket.readAll();
    await settle();
    expect(drained).to.equal(1);
    while (queue.output('stdout', 'x'.repeat(100_000)));
    void queue.drained().then(() => (drained += 1));
    outbox.discard();
    await settle();
    expect(drained).to.equal(2);
    await queue.drained();
  });

  it('lets go of whoever waits for the client when its execution ends', async () => {
    const socket = new StuckSocket();
    const { queue } = queueOn(socket);
    while (queue.output('stdout', 'x'.repeat(100_000)));
    const drained = queue.drained();
    queue.end({ type: 'timeout' });
    await drained;
    expect(queue.output('stdout', 'late')).to.equal(true);
  });

  it('sends the start in one write with what follows it, or after 5 ms by itself', async () => {
    const socket = new StuckSocket();
    const clock = new FakeClock();
    const { queue } = queueOn(socket, clock);
    queue.start();
    await clock.advance(4);
    queue.output('stdout', '1');
    await settle();
    socket.readAll();
    expect(socket.read.map(({ type }) => type)).to.deep.equal(['start', 'stdout']);
    expect(socket.writes).to.equal(1);
    const silent = new StuckSocket();
    queueOn(silent, clock).queue.start();
    await clock.advance(5);
    silent.readAll();
    expect(silent.read).to.deep.equal([{ type: 'start' }]);
    expect(clock.armed).to.equal(0);
  });

  it('sends all messages of one turn in one write, those of two commands too', async () => {
    const socket = new StuckSocket();
    const outbox = new Outbox(socket, socket, new FakeClock());
    for (const id of ['a', 'b']) {
      const queue = new MessageQueue(outbox, id);
      queue.beginWith({ type: 'start', executionId: id });
      queue.output('stdout', '1');
      queue.output('stdout', '2');
      queue.end({ type: 'exit', data: 0 });
    }
    expect(socket.frames).to.deep.equal([]);
    await settle();
    expect(socket.writes).to.equal(1);
    socket.readAll();
    const expected = ['a', 'b'].flatMap((id) => [
      { type: 'start', executionId: id, id },
      { type: 'stdout', id, data: '12' },
      { type: 'exit', data: 0, id },
    ]);
    expect(socket.read).to.deep.equal(expected);
  });
});

/** Output with neighbours of one stream joined, since where messages are cut is free. */
function joined(parts: readonly { stream: string; text: string }[]): { stream: string; text: string }[] {
  const runs: { stream: string; text: string }[] = [];
  for (const part of parts.filter(({ text }) => text !== '')) {
    const last = runs.at(-1);
    if (last?.stream === part.stream) last.text += part.text;
    else runs.push({ ...part });
  }
  return runs;
}
