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

/** Of whole texts, so it keeps nothing from one to the next. */
const decoder = new TextDecoder('utf-8', { fatal: true });

export interface BodyOptions {
  readonly limitBytes: number;
  readonly clock: Clock;
}

/** The JSON value of the body. INVALID_REQUEST, or BODY_TOO_LARGE as soon as that is known. */
export async function readJson(req: IncomingMessage, options: BodyOptions): Promise<unknown> {
  assertJson(req);
  const chunks: Buffer[] = [];
  await receiveBody(req, options, (chunk) => void chunks.push(chunk));
  return parseJson(Buffer.concat(chunks));
}

/** Parses exactly one JSON text in UTF-8. INVALID_REQUEST. */
export function parseJson(body: Buffer): unknown {
  if (body.length === 0)
    throw new ServiceError('INVALID_REQUEST', 'the body is empty, a JSON object is expected');
  let text: string;
  try {
    text = decoder.decode(body);
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

/** Throws INVALID_REQUEST unless the headers say JSON, plain. */
export function assertJson({ headers }: IncomingMessage): void {
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/([\w.-]+\+)?json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    throw new ServiceError('INVALID_REQUEST', 'the header Content-Type must be application/json in UTF-8');
  }
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw new ServiceError('INVALID_REQUEST', 'a body with a Content-Encoding is not accepted');
  }
}

/** What the headers say of the size, undefined where they say nothing. BODY_TOO_LARGE. */
export function declaredLength({ headers }: IncomingMessage, limitBytes: number): number | undefined {
  const text = headers['content-length'];
  if (text === undefined) return undefined;
  if (Number(text) > limitBytes) throw tooLarge(limitBytes);
  return Number(text);
}

function clientLeft(): ServiceError {
  return new ServiceError('STOPPED', 'the client left in mid body');
}

function tooLarge(limitBytes: number): ServiceError {
  return new ServiceError('BODY_TOO_LARGE', `the body is larger than the limit of ${limitBytes} bytes`);
}

/**
 * Hands the body to `take`, chunk by chunk; while a promise that it returned is pending nothing more is read. Resolves at
 * the end of the body; rejects with INVALID_REQUEST, BODY_TOO_LARGE, or what `take` failed with.
 */
export async function receiveBody(
  req: IncomingMessage,
  { limitBytes, clock }: BodyOptions,
  take: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  declaredLength(req, limitBytes);
  // A client may leave before anybody listens for that.
  if (req.destroyed) throw clientLeft();
  await new Promise<void>((resolve, reject) => {
    let size = 0;
    let taken: Promise<void> = Promise.resolve();
    const fail = (error: unknown): void =>
      settle(() => reject(error instanceof Error ? error : new Error(String(error))));
    const idle = (): void => fail(new ServiceError('INVALID_REQUEST', 'the body stopped arriving'));
    let timer = clock.setTimer(IDLE_MS, idle);
    const onData = (chunk: Buffer): void => {
      timer.cancel();
      timer = clock.setTimer(IDLE_MS, idle);
      size += chunk.length;
      if (size > limitBytes) {
        fail(tooLarge(limitBytes));
        return;
      }
      try {
        const pending = take(chunk);
        if (!pending) return;
        req.pause();
        taken = pending.then(() => void req.resume());
        taken.catch(fail);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void => settle(() => void taken.then(resolve, reject));
    const onClose = (): void => fail(clientLeft());
    let settled = false;
    const settle = (end: () => void): void => {
      if (settled) return;
      settled = true;
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
