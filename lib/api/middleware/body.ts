/**
 * Request bodies: read whole, bounded before anything is parsed, then parsed as exactly one JSON text in UTF-8.
 *
 * An answer that is sent while its request still arrives makes many clients report a broken pipe instead of the answer
 * (they write on, the server closes, the kernel resets). So a body that is not wanted is first read to its end and
 * dropped, within bounds.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';

/** A body that stops arriving for this long is given up. */
const IDLE_MS = 60_000;
/** What is dropped of an unwanted body before it is answered at all events. */
const DISCARD_BYTES = 256 * 1024 * 1024;
const DISCARD_MS = 30_000;

export interface BodyOptions {
  readonly limitBytes: number;
  readonly clock: Clock;
}

/** The JSON value of the body. INVALID_REQUEST, or BODY_TOO_LARGE as soon as that is known. */
export async function readJson(req: IncomingMessage, options: BodyOptions): Promise<unknown> {
  assertJson(req);
  const body = await readBody(req, options);
  if (body.length === 0)
    throw new ServiceError('INVALID_REQUEST', 'the body is empty, a JSON object is expected');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the body is no UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, which may hold secrets.
    throw new ServiceError('INVALID_REQUEST', 'the body is no single JSON value');
  }
}

function assertJson({ headers }: IncomingMessage): void {
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/([\w.-]+\+)?json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    throw new ServiceError('INVALID_REQUEST', 'the header Content-Type must be application/json in UTF-8');
  }
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw new ServiceError('INVALID_REQUEST', 'a body with a Content-Encoding is not accepted');
  }
}

function readBody(req: IncomingMessage, { limitBytes, clock }: BodyOptions): Promise<Buffer> {
  const declared = Number(req.headers['content-length'] ?? 0);
  const tooLarge = (): ServiceError =>
    new ServiceError('BODY_TOO_LARGE', `the body is larger than the limit of ${limitBytes} bytes`);
  if (declared > limitBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const idle = (): void =>
      settle(() => reject(new ServiceError('INVALID_REQUEST', 'the body stopped arriving')));
    let timer = clock.setTimer(IDLE_MS, idle);
    const onData = (chunk: Buffer): void => {
      timer.cancel();
      timer = clock.setTimer(IDLE_MS, idle);
      size += chunk.length;
      if (size > limitBytes) settle(() => reject(tooLarge()));
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle(() => resolve(Buffer.concat(chunks)));
    const onClose = (): void =>
      settle(() => reject(new ServiceError('STOPPED', 'the client left in mid body')));
    const settle = (end: () => void): void => {
      timer.cancel();
      req.off('data', onData).off('end', onEnd).off('close', onClose).pause();
      end();
    };
    req.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

/**
 * Drops what is left of a body. Resolves with false where the bounds were reached first: the connection is no use any
 * more then. Never rejects.
 */
export function discardBody(req: IncomingMessage, clock: Clock): Promise<boolean> {
  if (req.readableEnded || req.destroyed) return Promise.resolve(true);
  return new Promise((resolve) => {
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > DISCARD_BYTES) settle(false);
    };
    const onEnd = (): void => settle(true);
    const timer = clock.setTimer(DISCARD_MS, () => settle(false));
    const settle = (atEnd: boolean): void => {
      timer.cancel();
      req.off('data', onData).off('end', onEnd).off('close', onEnd);
      if (!atEnd) req.pause();
      resolve(atEnd);
    };
    req.on('data', onData).on('end', onEnd).on('close', onEnd);
    req.resume();
  });
}
