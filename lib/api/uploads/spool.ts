/**
 * JSON bodies with large base64 texts, kept on disk while they are used: memory stays bounded whatever their size, and
 * nothing is done before all of a body arrived and was found valid.
 *
 * Each body is a file without a name: it is removed from its folder as soon as it is open, so its bytes go when it is
 * closed, also by the end of the process. Room for a body is taken before any of it is read; meanwhile its client is held
 * back by TCP.
 */
import type { FileHandle } from 'node:fs/promises';
import { open, unlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deadline } from '../../base/abort.js';
import type { Budget, Share } from '../../base/budget.js';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';
import type { Randomness } from '../../base/ids.js';
import { assertJson, declaredLength, parseJson, receiveBody } from '../middleware/body.js';
import { Base64Decoder } from './base64.js';
import type { LongText } from './split-json.js';
import { SplitJson } from './split-json.js';

export interface SpooledBody extends AsyncDisposable {
  /** The body as JSON.parse gives it, with a placeholder for each long text. */
  readonly value: unknown;
  /** The bytes that a text of the value encodes, be it short, or a placeholder. */
  content(text: string, what: string): SpooledContent;
}

export interface SpooledContent {
  /** Decodes the text once to learn its length. Rejects with INVALID_REQUEST where it is no base64. */
  measure(): Promise<number>;
  /** The decoded bytes, in pieces. */
  bytes(): AsyncIterable<Buffer>;
}

export interface SpoolOptions {
  readonly limitBytes: number;
  /** What all bodies together may take of the disk, in bytes. */
  readonly room: Budget;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Texts above this go to disk; below it no path or name is. */
const LONG_TEXT_BYTES = 16 * 1024;
/** What a body may hold beside its long texts. */
const SKELETON_BYTES = 4 * 1024 * 1024;
/** How long a body waits for room. */
const WAIT_MS = 30_000;
const READ_BYTES = 64 * 1024;

/**
 * Reads a body to its end. INVALID_REQUEST, BODY_TOO_LARGE; UPLOADS_FULL where there is no room in time; the reason of the
 * signal. The caller disposes of it.
 */
export async function spoolJson(
  req: IncomingMessage,
  options: SpoolOptions,
  signal: AbortSignal,
): Promise<SpooledBody> {
  assertJson(req);
  const declared = declaredLength(req, options.limitBytes);
  const share = await takeRoom(declared ?? options.limitBytes, options, signal);
  try {
    const file = await openNameless(options.randomness);
    try {
      const key = options.randomness.uuid();
      const { skeleton, long, sizeBytes } = await receive(req, file, key, options);
      share.shrinkTo(sizeBytes);
      return new Spooled({ file, share, key, long, value: parseJson(skeleton) });
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    share.release();
    throw error;
  }
}

async function takeRoom(
  sizeBytes: number,
  { room, clock }: SpoolOptions,
  signal: AbortSignal,
): Promise<Share> {
  using late = deadline(
    clock,
    WAIT_MS,
    'UPLOADS_FULL',
    'other uploads take all the room that there is for them',
  );
  return await room.take(sizeBytes, AbortSignal.any([signal, late.signal]));
}

async function openNameless(randomness: Randomness): Promise<FileHandle> {
  const name = path.join(tmpdir(), `serai-upload-${randomness.uuid()}`);
  const file = await open(name, 'wx+', 0o600);
  try {
    await unlink(name);
  } catch (error) {
    await file.close();
    throw error;
  }
  return file;
}

interface Received {
  readonly skeleton: Buffer;
  readonly long: readonly LongText[];
  readonly sizeBytes: number;
}

async function receive(
  req: IncomingMessage,
  file: FileHandle,
  key: string,
  options: SpoolOptions,
): Promise<Received> {
  const split = new SplitJson({ key, longerThanBytes: LONG_TEXT_BYTES, limitBytes: SKELETON_BYTES });
  let sizeBytes = 0;
  await receiveBody(req, options, async (chunk) => {
    sizeBytes += chunk.length;
    if (!split.push(chunk)) {
      throw new ServiceError(
        'BODY_TOO_LARGE',
        `the body holds more than ${SKELETON_BYTES} bytes beside large contents`,
      );
    }
    await file.appendFile(chunk).catch((error: unknown) => {
      throw isDiskFull(error)
        ? new ServiceError('UPLOADS_FULL', 'the disk that uploads are kept on is full', { cause: error })
        : error;
    });
  });
  return { ...split.end(), sizeBytes };
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

interface SpooledParts {
  readonly file: FileHandle;
  readonly share: Share;
  readonly key: string;
  readonly long: readonly LongText[];
  readonly value: unknown;
}

class Spooled implements SpooledBody {
  readonly #parts: SpooledParts;

  constructor(parts: SpooledParts) {
    this.#parts = parts;
  }

  get value(): unknown {
    return this.#parts.value;
  }

  content(text: string, what: string): SpooledContent {
    const { key, long } = this.#parts;
    const place = text.startsWith(`${key}:`) ? long[Number(text.slice(key.length + 1))] : undefined;
    const pieces = (): AsyncIterable<Buffer> | Iterable<Buffer> =>
      place ? this.#read(place) : [Buffer.from(text)];
    return { bytes: () => decode(pieces(), what), measure: () => measure(pieces(), what) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.file.close();
    this.#parts.share.release();
  }

  /** Each piece is good until the next is asked for: one buffer serves all, since garbage of this size piles up. */
  async *#read({ start, end }: LongText): AsyncIterable<Buffer> {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - start));
    for (let position = start; position < end;) {
      const wanted = Math.min(buffer.length, end - position);
      const { bytesRead } = await this.#parts.file.read(buffer, 0, wanted, position);
      if (bytesRead === 0)
        throw new ServiceError('ILLEGAL_STATE', 'an upload is shorter on disk than it was');
      yield buffer.subarray(0, bytesRead);
      position += bytesRead;
    }
  }
}

async function measure(chunks: AsyncIterable<Buffer> | Iterable<Buffer>, what: string): Promise<number> {
  const decoder = new Base64Decoder(what);
  let size = 0;
  for await (const chunk of chunks) size += decoder.count(chunk);
  decoder.end();
  return size;
}

async function* decode(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  what: string,
): AsyncIterable<Buffer> {
  const decoder = new Base64Decoder(what);
  for await (const chunk of chunks) {
    const bytes = decoder.push(chunk);
    if (bytes.length > 0) yield bytes;
  }
  decoder.end();
}
