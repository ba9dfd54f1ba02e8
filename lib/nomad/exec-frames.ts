import { isRecord } from './decode.js';

/**
 * Frames of Nomad's exec WebSocket: what is sent and what comes back, one JSON text each.
 *
 *   to Nomad     {"stdin":{"data":base64}}  {"stdin":{"close":true}}  {"tty_size":{"height","width"}}  {}
 *   from Nomad   {"stdout":{"data":base64}} {"stdout":{"close":true}} (and stderr)
 *                {"exited":true,"result":{"exit_code":N}}, where `exit_code` is missing when it is 0
 *
 * Nearly all traffic is output frames of exactly the form above, so those are read without parsing JSON; whatever looks
 * different in the least takes the slow way. Format: spec of Nomad 1.6, as in test/fixtures/nomad/exec.
 */
export type ExecFrame =
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly data: Buffer }
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** Ends of streams, keep-alives and whatever a newer Nomad may add. */
  | { readonly kind: 'other' }
  /** No frame of the protocol: nothing after it can be trusted. */
  | { readonly kind: 'broken' };

/** Most bytes of input in one frame. Nomad's driver plugins take messages of 4 MiB at most. */
const INPUT_CHUNK_BYTES = 32 * 1024;

export const KEEP_ALIVE_FRAME = '{}';
export const STDIN_CLOSE_FRAME = '{"stdin":{"close":true}}';

export function stdinFrame(chunk: Buffer): string {
  return `{"stdin":{"data":"${chunk.toString('base64')}"}}`;
}

export function resizeFrame(columns: number, rows: number): string {
  return `{"tty_size":{"height":${rows},"width":${columns}}}`;
}

/** The input in pieces that fit into one frame each; the pieces share memory with `input`. */
export function inputChunks(input: Uint8Array): Buffer[] {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += INPUT_CHUNK_BYTES) {
    chunks.push(bytes.subarray(at, at + INPUT_CHUNK_BYTES));
  }
  return chunks;
}

const OTHER: ExecFrame = { kind: 'other' };
const BROKEN: ExecFrame = { kind: 'broken' };
const STDOUT_PREFIX = Buffer.from('{"stdout":{"data":"');
const STDERR_PREFIX = Buffer.from('{"stderr":{"data":"');
const SUFFIX = Buffer.from('"}}');

/** Reads one frame; never throws. */
export function parseExecFrame(frame: Buffer): ExecFrame {
  return parsePlainOutput(frame) ?? parseAny(frame);
}

/** An output frame without any liberty taken in its JSON, or undefined. */
function parsePlainOutput(frame: Buffer): ExecFrame | undefined {
  const start = STDOUT_PREFIX.length;
  const end = frame.length - SUFFIX.length;
  if (end <= start || frame.compare(SUFFIX, 0, SUFFIX.length, end) !== 0) return undefined;
  const stream = startsWith(frame, STDOUT_PREFIX)
    ? 'stdout'
    : startsWith(frame, STDERR_PREFIX)
      ? 'stderr'
      : undefined;
  // Anything but one base64 text between the two, an escape or a second field, does not decode to its full length.
  const data = stream && decodeBase64(frame.toString('latin1', start, end));
  return stream && data && { kind: 'output', stream, data };
}

function startsWith(frame: Buffer, prefix: Buffer): boolean {
  return frame.compare(prefix, 0, prefix.length, 0, prefix.length) === 0;
}

function parseAny(frame: Buffer): ExecFrame {
  let value: unknown;
  try {
    value = JSON.parse(frame.toString('utf8'));
  } catch {
    return BROKEN; // the caller ends the session
  }
  if (!isRecord(value)) return BROKEN;
  const parts = [
    parseOutput('stdout', value['stdout']),
    parseOutput('stderr', value['stderr']),
    value['exited'] === true ? parseExit(value['result']) : OTHER,
  ].filter((each) => each !== OTHER);
  const [part = OTHER] = parts;
  // Nomad says one thing at a time; more than one would mean to lose the rest.
  return parts.length > 1 ? BROKEN : part;
}

function parseOutput(stream: 'stdout' | 'stderr', output: unknown): ExecFrame {
  const encoded = isRecord(output) ? output['data'] : undefined;
  if (encoded === undefined || encoded === null || encoded === '') return OTHER;
  const data = typeof encoded === 'string' ? decodeBase64(encoded) : undefined;
  return data ? { kind: 'output', stream, data } : BROKEN;
}

/** Without a result the command has not told how it ended, which is no exit. */
function parseExit(result: unknown): ExecFrame {
  if (!isRecord(result)) return OTHER;
  const exitCode = result['exit_code'] ?? 0;
  return typeof exitCode === 'number' && Number.isInteger(exitCode) ? { kind: 'exited', exitCode } : BROKEN;
}

/** Undefined for what is no whole base64 text: Node's decoder passes over what it does not know. */
function decodeBase64(encoded: string): Buffer | undefined {
  if (encoded.length % 4 !== 0) return undefined;
  const padding = encoded.endsWith('==') ? 2 : encoded.endsWith('=') ? 1 : 0;
  const data = Buffer.from(encoded, 'base64');
  return data.length === (encoded.length / 4) * 3 - padding ? data : undefined;
}
