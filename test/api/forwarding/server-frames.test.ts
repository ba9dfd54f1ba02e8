import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { closeFrame, ServerFrames, textFrame } from '../../../lib/api/forwarding/server-frames.js';

/** A frame as servers send it. */
function frame({ opcode, isLast, payload }: { opcode: number; isLast: boolean; payload: Buffer }): Buffer {
  const first = (isLast ? 0x80 : 0) | opcode;
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  if (length < 126) head[1] = length;
  else if (length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

const size = fc.oneof(fc.nat(200), fc.constantFrom(0, 125, 126, 4096, 4097, 65_535, 65_536, 70_000));
const message = fc.record({
  sizes: fc.array(size, { minLength: 1, maxLength: 3 }),
  ping: fc.boolean(),
});

describe('ServerFrames', () => {
  it('knows each border between messages, and each short text, however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1 }),
        (messages, cuts) => {
          const borders = new Set([0]);
          const texts: string[] = [];
          const parts: Buffer[] = [];
          const put = (part: Buffer): void => void parts.push(part);
          const length = (): number => parts.reduce((sum, part) => sum + part.length, 0);
          for (const { sizes, ping } of messages) {
            for (const [index, bytes] of sizes.entries()) {
              const isLast = index === sizes.length - 1;
              const payload = Buffer.alloc(bytes, 'a');
              put(frame({ opcode: index === 0 ? 1 : 0, isLast, payload }));
              if (ping && !isLast) put(frame({ opcode: 9, isLast: true, payload: Buffer.from('ping') }));
            }
            const [only = 0] = sizes;
            if (sizes.length === 1 && only <= 4096) texts.push('a'.repeat(only));
            borders.add(length());
          }
          const all = Buffer.concat(parts);
          const told: string[] = [];
          const frames = new ServerFrames((text) => told.push(text));
          expect(frames.isBetween).to.equal(true);
          for (let at = 0, turn = 0; at < all.length; turn += 1) {
            const end = Math.min(all.length, at + (cuts[turn % cuts.length] ?? 1));
            frames.push(all.subarray(at, end));
            at = end;
            expect(frames.isBetween, `at ${at}`).to.equal(borders.has(at));
          }
          expect(told).to.deep.equal(texts);
          expect(frames.hasClosed).to.equal(false);
          frames.push(closeFrame(1000));
          expect(frames.hasClosed).to.equal(true);
        },
      ),
    );
  });

  it('finds no place any more after a frame that no server sends', () => {
    const frames = new ServerFrames(() => undefined);
    frames.push(Buffer.from([0x81, 0x80, 0, 0, 0, 0]));
    frames.push(textFrame('x'));
    expect(frames.isBetween).to.equal(false);
  });

  it('writes frames that a client takes', async () => {
    const texts = ['', 'é', 'a'.repeat(126), 'b'.repeat(5000)];
    const server = createServer().listen(0, '127.0.0.1');
    server.on('upgrade', (req, connection) => {
      const accept = createHash('sha1')
        .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64');
      connection.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      for (const text of texts) connection.write(textFrame(text));
      connection.end(closeFrame(1012));
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}`);
    const got: string[] = [];
    socket.on('message', (data: Buffer) => got.push(data.toString()));
    const [code] = (await once(socket, 'close')) as [number];
    server.close();
    expect(got).to.deep.equal(texts);
    expect(code).to.equal(1012);
  });
});
