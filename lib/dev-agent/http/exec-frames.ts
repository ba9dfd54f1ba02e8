import type { RawData } from 'ws';

/**
 * The frames of an exec socket, from the server's side: JSON texts, data in base64.
 *
 * To the client: `{"stdout":{"data":…}}`, `{"stderr":{"close":true}}`, `{"exited":true,"result":{"exit_code":N}}`, where
 * a code of 0 is left out. From the client: `{"stdin":{"data":…}}`, `{"stdin":{"close":true}}`,
 * `{"tty_size":{"height":…,"width":…}}`, and `{}` to keep the connection alive.
 */
export interface ClientFrame {
  readonly input: Buffer | undefined;
  readonly closesInput: boolean;
  readonly size: { readonly columns: number; readonly rows: number } | undefined;
}

/** What Nomad puts into one frame. */
const MAX_DATA_BYTES = 4096;

export function* outputFrames(stream: 'stdout' | 'stderr', chunk: Buffer): Generator<string> {
  for (let at = 0; at < chunk.length; at += MAX_DATA_BYTES) {
    yield `{"${stream}":{"data":"${chunk.toString('base64', at, at + MAX_DATA_BYTES)}"}}`;
  }
}

export function closeFrame(stream: 'stdout' | 'stderr'): string {
  return JSON.stringify({ [stream]: { close: true } });
}

export function exitFrame(exitCode: number): string {
  return JSON.stringify({ exited: true, result: exitCode === 0 ? {} : { exit_code: exitCode } });
}

/** The text of a message, however ws cut it. */
export function textOf(data: RawData): string {
  if (Buffer.isBuffer(data)) return data.toString('utf8');
  return Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]).toString('utf8');
}

/** Undefined where the text is no frame. */
export function parseClientFrame(text: string): ClientFrame | undefined {
  const frame = parseObject(text);
  if (!frame) return undefined;
  const { stdin, tty_size: size } = frame;
  const data = isObject(stdin) ? stdin['data'] : undefined;
  return {
    input: typeof data === 'string' ? Buffer.from(data, 'base64') : undefined,
    closesInput: isObject(stdin) && stdin['close'] === true,
    size: isObject(size) ? { columns: Number(size['width']), rows: Number(size['height']) } : undefined,
  };
}

/** What is wrong with the first frame of a connection with `ws_handshake`, or undefined. */
export function handshakeProblem(text: string): string | undefined {
  const frame = parseObject(text);
  if (!frame) return 'invalid handshake';
  return frame['version'] === 1 ? undefined : `unexpected handshake value: ${String(frame['version'])}`;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
