import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';
import type { Randomness } from '../../base/ids.js';
import { assertJson, parseJson, receiveBody } from '../middleware/body.js';
import { Base64Decoder } from './base64.js';
import type { LongText } from './split-json.js';
import { SplitJson } from './split-json.js';

/**
 * A JSON body with large base64 texts, kept on disk while it is used: memory stays bounded whatever its size, and
 * nothing is done before all of it arrived and was found valid.
 */
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
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Texts above this go to disk; below it no path or name is. */
const LONG_TEXT_BYTES = 16 * 1024;
/** What a body may hold beside its long texts. */
const SKELETON_BYTES = 4 * 1024 * 1024;

/** Reads a body to its end. INVALID_REQUEST, BODY_TOO_LARGE. The caller disposes of it. */
export async function spoolJson(req: IncomingMessage, options: SpoolOptions): Promise<SpooledBody> {
  assertJson(req);
  const folder = await mkdtemp(path.join(tmpdir(), 'serai-upload-'));
  try {
    const file = path.join(folder, 'body');
    const key = options.randomness.uuid();
    const handle = await open(file, 'wx', 0o600);
    const split = new SplitJson({ key, longerThanBytes: LONG_TEXT_BYTES, limitBytes: SKELETON_BYTES });
    try {
      await receiveBody(req, options, (chunk) => {
        if (!split.push(chunk)) {
          throw new ServiceError(
            'BODY_TOO_LARGE',
            `the body holds more than ${SKELETON_BYTES} bytes beside large contents`,
          );
        }
        return handle.appendFile(chunk);
      });
    } finally {
      await handle.close();
    }
    const { skeleton, long } = split.end();
    return new Spooled(folder, file, key, parseJson(skeleton), long);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

class Spooled implements SpooledBody {
  readonly value: unknown;
  readonly #folder: string;
  readonly #file: string;
  readonly #key: string;
  readonly #long: readonly LongText[];

  constructor(folder: string, file: string, key: string, value: unknown, long: readonly LongText[]) {
    this.#folder = folder;
    this.#file = file;
    this.#key = key;
    this.value = value;
    this.#long = long;
  }

  content(text: string, what: string): SpooledContent {
    const long = text.startsWith(`${this.#key}:`)
      ? this.#long[Number(text.slice(this.#key.length + 1))]
      : undefined;
    const decoded = (): AsyncIterable<Buffer> => decode(long ? this.#read(long) : [Buffer.from(text)], what);
    return {
      bytes: decoded,
      measure: async () => {
        let size = 0;
        for await (const { length } of decoded()) size += length;
        return size;
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  #read({ start, end }: LongText): AsyncIterable<Buffer> {
    return createReadStream(this.#file, { start, end: end - 1, highWaterMark: 256 * 1024 });
  }
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
