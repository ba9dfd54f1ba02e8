import { expect } from 'chai';
import fc from 'fast-check';
import { MessageQueue } from '../../../lib/api/websocket/message-queue.js';
import type { PeerMessage } from '../../../lib/protocol/websocket.js';
import { settle } from '../../support/fake-clock.js';

/** A socket whose client reads only when told to. */
class StuckSocket {
  readonly frames: { text: string; sent: (error?: Error) => void }[] = [];
  readonly read: PeerMessage[] = [];

  get bufferedAmount(): number {
    return this.frames.reduce((sum, { text }) => sum + text.length, 0);
  }

  send(text: string, sent: (error?: Error) => void): void {
    this.frames.push({ text, sent });
  }

  readAll(): void {
    for (let frame = this.frames.shift(); frame; frame = this.frames.shift()) {
      this.read.push(JSON.parse(frame.text) as PeerMessage);
      frame.sent();
    }
  }
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
        const queue = new MessageQueue(socket, { type: 'start' });
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
        let ends = 0;
        queue.end({ type: 'exit', data: 0 }, () => (ends += 1));
        queue.end({ type: 'timeout' }, () => (ends += 1));
        queue.output('stdout', 'late');
        queue.tell({ type: 'refused', data: 'late' });
        await settle();
        socket.readAll();
        expect(ends).to.equal(1);
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
    const queue = new MessageQueue(socket, { type: 'start' });
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
    queue.discard();
    await settle();
    expect(drained).to.equal(2);
    await queue.drained();
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
