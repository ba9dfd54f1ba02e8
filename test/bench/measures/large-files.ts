/**
 * Large files through the service, and what they cost it in memory: `npm run bench -- large-files`.
 *
 * A file of 1 GiB goes in by pieces of 32 MiB that a command in the runner joins, and comes out again whole; then twenty
 * copies of 50 MB go in at once. Contents are compared by SHA-256, and the service may not grow by more than the limit.
 */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import type { BenchClient } from '../client.js';
import type { Figure } from '../figures.js';
import type { Stack } from '../stack.js';

const PIECES = 32;
const PIECE_BYTES = 32 * 2 ** 20;
const COPIES = 20;
const COPY_BYTES = 50_000_000;
const LIMIT_BYTES = 64 * 2 ** 20;
const SAMPLE_MS = 20;

export async function largeFiles(stack: Stack): Promise<readonly Figure[]> {
  const { client } = stack.warm;
  return [...(await inPieces(stack, client)), ...(await inParallel(stack, client))];
}

async function inPieces(stack: Stack, client: BenchClient): Promise<readonly Figure[]> {
  const runner = await client.claim();
  using memory = new MemoryWatch(stack);
  const sent = createHash('sha256');
  const writing = performance.now();
  for (let index = 0; index < PIECES; index += 1) {
    const piece = bytes(PIECE_BYTES, index);
    sent.update(piece);
    if ((await copy(stack, runner, 'piece', piece)) !== 'written') throw new Error('a piece was refused');
    await client.run(runner, 'cat piece >> whole');
  }
  const reading = performance.now();
  const { hash, size } = await download(stack, runner, 'whole');
  const done = performance.now();
  assertSame('the file of pieces', hash, sent);
  if (size !== PIECES * PIECE_BYTES) throw new Error(`the file has ${size} bytes`);
  const grownBytes = memory.end();
  await client.release(runner);
  const megabytes = size / 1e6;
  return [
    {
      name: 'copy of 1 GiB in pieces',
      party: 'warm',
      unit: 'MB/s',
      samples: [megabytes / ((reading - writing) / 1000)],
    },
    {
      name: 'download of 1 GiB',
      party: 'warm',
      unit: 'MB/s',
      samples: [megabytes / ((done - reading) / 1000)],
    },
    { name: 'memory of the service meanwhile', party: 'warm', unit: 'MB', samples: [grownBytes / 1e6] },
  ];
}

async function inParallel(stack: Stack, client: BenchClient): Promise<readonly Figure[]> {
  const runners = await Promise.all(Array.from({ length: 10 }, () => client.claim()));
  const content = bytes(COPY_BYTES, 99);
  const wanted = createHash('sha256').update(content);
  using memory = new MemoryWatch(stack);
  const startedMs = performance.now();
  const outcomes = await Promise.all(
    Array.from({ length: COPIES }, (_, index) =>
      copy(stack, runners[index % runners.length] ?? '', `copy-${index}`, content),
    ),
  );
  const tookMs = performance.now() - startedMs;
  const grownBytes = memory.end();
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome === 'refused') continue;
    const { hash } = await download(stack, runners[index % runners.length] ?? '', `copy-${index}`);
    assertSame(`copy ${index}`, hash, wanted.copy());
  }
  await Promise.all(runners.map((runner) => client.release(runner)));
  const written = outcomes.filter((outcome) => outcome === 'written').length;
  return [
    {
      name: `${COPIES} copies of 50 MB at once, ${written} taken`,
      party: 'warm',
      unit: 'ms',
      samples: [tookMs],
    },
    { name: 'memory of the service meanwhile', party: 'warm', unit: 'MB', samples: [grownBytes / 1e6] },
  ];
}

/** Bytes that no layer can compress or guess, the same at each run. */
function bytes(size: number, seed: number): Buffer {
  const block = Buffer.alloc(2 ** 20);
  let state = seed + 1;
  for (let at = 0; at < block.length; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    block.writeUInt32LE(state, at);
  }
  return Buffer.alloc(size, block);
}

/** A refusal is one for want of room (429); anything else that is no success throws. */
async function copy(
  stack: Stack,
  runner: string,
  path: string,
  content: Buffer,
): Promise<'written' | 'refused'> {
  const body = Buffer.from(`{"copy":[{"path":"${path}","content":"${content.toString('base64')}"}]}`);
  const answer = await fetch(`${stack.warm.url}/api/v1/runners/${runner}/files`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const told = await answer.text();
  if (answer.status === 204) return 'written';
  if (answer.status === 429) return 'refused';
  throw new Error(`a copy was answered with ${answer.status}: ${told}`);
}

async function download(
  stack: Stack,
  runner: string,
  path: string,
): Promise<{ readonly hash: Hash; readonly size: number }> {
  const answer = await fetch(`${stack.warm.url}/api/v1/runners/${runner}/files/raw?path=${path}`);
  if (!answer.ok) throw new Error(`a download was answered with ${answer.status}`);
  const hash = createHash('sha256');
  let size = 0;
  if (!answer.body) throw new Error('a download without a body');
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { hash, size };
}

function assertSame(what: string, got: Hash, wanted: Hash): void {
  if (got.digest('hex') !== wanted.digest('hex')) throw new Error(`${what} came back changed`);
}

/** The most that the service grew since this was made. */
class MemoryWatch implements Disposable {
  readonly #stack: Stack;
  readonly #beforeBytes: number;
  readonly #timer: NodeJS.Timeout;
  #mostBytes: number;

  constructor(stack: Stack) {
    this.#stack = stack;
    this.#beforeBytes = stack.warm.process.residentBytes;
    this.#mostBytes = this.#beforeBytes;
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  /** Throws where it grew beyond the limit. */
  end(): number {
    this[Symbol.dispose]();
    this.#sample();
    const grownBytes = this.#mostBytes - this.#beforeBytes;
    if (grownBytes < LIMIT_BYTES) return grownBytes;
    throw new Error(`the service grew by ${Math.round(grownBytes / 1e6)} MB`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    this.#mostBytes = Math.max(this.#mostBytes, this.#stack.warm.process.residentBytes);
  }
}
