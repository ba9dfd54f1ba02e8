/**
 * What crosses the socket of an execution, and that of a session. Server to client: one JSON object per text frame. Which
 * of the two protocols is spoken is settled by the handshake (subprotocols.ts); docs/websocket.md tells both in full.
 *
 * Without a subprotocol (Poseidon API 0.2.2) frames of the client are the program's standard input as they stand, and
 * the server sends `PeerMessage`. With `serai.v1` text frames of the client are `ClientMessage`, binary ones raw
 * input, and the server sends `ServerMessage`. A session speaks `serai.v1` with the id of a command in every message:
 * `SessionClientMessage` and `SessionServerMessage`.
 */
import type { ProgramSignal } from '../base/program-signals.js';
import type { ExecuteBody } from './http.js';

export type PeerMessage =
  | { readonly type: 'start' }
  | OutputMessage
  | { readonly type: 'exit'; readonly data: number }
  | { readonly type: 'timeout' }
  | { readonly type: 'error'; readonly data: string };

export interface OutputMessage {
  readonly type: 'stdout' | 'stderr';
  readonly data: string;
}

export type ServerMessage =
  | { readonly type: 'start'; readonly executionId: string }
  | OutputMessage
  /** Something that the client sent was not carried out; the program goes on. */
  | { readonly type: 'refused'; readonly data: string }
  | ({ readonly type: 'exit'; readonly data: number } & EndDetails)
  | ({ readonly type: 'timeout' } & EndDetails)
  | ({ readonly type: 'error'; readonly data: string } & EndDetails);

export interface EndDetails {
  /** From the start of the command to its end; 0 for one that never started. */
  readonly durationMs: number;
  /** Nomad says that the runner ran out of memory. */
  readonly oomKilled: boolean;
}

export interface StdinMessage {
  readonly type: 'stdin';
  readonly data: string;
}

export interface ResizeMessage {
  readonly type: 'resize';
  readonly cols: number;
  readonly rows: number;
}

export interface SignalMessage {
  readonly type: 'signal';
  readonly data: ProgramSignal;
}

export interface EofMessage {
  readonly type: 'eof';
}

export type ClientMessage = StdinMessage | ResizeMessage | SignalMessage | EofMessage;

/** A command on a session socket: an id of the client's choice, and what `POST /execute` takes. */
export interface ExecMessage extends ExecuteBody {
  readonly type: 'exec';
  readonly id: string;
}

/** Ends one command, whether it runs or waits. */
export interface CancelMessage {
  readonly type: 'cancel';
  readonly id: string;
}

/** A message for the program that runs; with an id it has to be that of its command. */
export type ForCommand<M extends ClientMessage> = M & { readonly id?: string };

export type SessionClientMessage =
  | ExecMessage
  | CancelMessage
  | ForCommand<StdinMessage>
  | ForCommand<ResizeMessage>
  | ForCommand<SignalMessage>
  | ForCommand<EofMessage>;

export type SessionServerMessage =
  | (ServerMessage & { readonly id: string })
  /** What was refused names no command. */
  | { readonly type: 'refused'; readonly data: string };

/** Existing clients compare this text; it is said only with Nomad's own evidence. */
export const OUT_OF_MEMORY_TEXT = 'the allocation was OOM Killed';

/** What a client is told whose command it cancelled itself. */
export const CANCELLED_TEXT = 'the command was cancelled';

/** What a client is told whose command printed more than it may. */
export const OUTPUT_LIMIT_TEXT = 'the output limit of the execution was exceeded';

export function formatServerMessage(message: PeerMessage | ServerMessage | SessionServerMessage): string {
  return JSON.stringify(message);
}
