/**
 * The two ways to speak of an execution, as the handshake settles it: that of existing clients, and `serai.v1`, which
 * sessions speak too. Everything else about a socket is the same for both.
 */
import { messageOf } from '../../base/errors.js';
import type { ExecutionId } from '../../base/ids.js';
import type { Exit } from '../../execution/api.js';
import { SERAI_V1 } from '../../protocol/subprotocols.js';
import type { ClientMessage, PeerMessage, ServerMessage } from '../../protocol/websocket.js';
import { OUT_OF_MEMORY_TEXT, OUTPUT_LIMIT_TEXT } from '../../protocol/websocket.js';
import { parseClientMessage } from './client-message.js';

/** What a frame of the client asks for. */
export type ClientRequest =
  | Exclude<ClientMessage, { type: 'stdin' }>
  | { readonly type: 'stdin'; readonly bytes: Buffer }
  /** It is no message; `why` is for the client. */
  | { readonly type: 'unreadable'; readonly why: string };

export interface Dialect extends Speech {
  read(frame: Buffer, isBinary: boolean): ClientRequest;
}

/** How the beginning and the end of an execution are told. */
export interface Speech {
  start(executionId: ExecutionId): PeerMessage | ServerMessage;
  /** The one message that ends a socket. A hang-up is the client's own doing; it reads this only if still there. */
  end(exit: Exit, durationMs: number): PeerMessage | ServerMessage;
}

/** The dialect of a socket with this subprotocol; with none it is the empty text. */
export function dialectOf(subprotocol: string): Dialect {
  return subprotocol === SERAI_V1 ? seraiV1 : peer;
}

const peer: Dialect = {
  start: () => ({ type: 'start' }),
  end: endMessage,
  read: (bytes) => ({ type: 'stdin', bytes }),
};

export const seraiV1Speech = {
  start: (executionId: ExecutionId): ServerMessage => ({ type: 'start', executionId }),
  end: (exit: Exit, durationMs: number): ServerMessage => ({
    ...endMessage(exit),
    durationMs,
    oomKilled: exit.kind === 'out-of-memory',
  }),
};

const seraiV1: Dialect = {
  ...seraiV1Speech,
  read(frame, isBinary) {
    if (isBinary) return { type: 'stdin', bytes: frame };
    try {
      return toRequest(parseClientMessage(frame.toString('utf8')));
    } catch (error) {
      return { type: 'unreadable', why: messageOf(error) };
    }
  },
};

export function toRequest(message: ClientMessage): ClientRequest {
  return message.type === 'stdin' ? { type: 'stdin', bytes: Buffer.from(message.data) } : message;
}

function endMessage(exit: Exit): Extract<PeerMessage, { type: 'exit' | 'timeout' | 'error' }> {
  switch (exit.kind) {
    case 'exited':
      return { type: 'exit', data: exit.exitCode };
    case 'time-limit':
    case 'inactive':
      return { type: 'timeout' };
    case 'output-limit':
      return { type: 'error', data: OUTPUT_LIMIT_TEXT };
    case 'out-of-memory':
      return { type: 'error', data: OUT_OF_MEMORY_TEXT };
    case 'hang-up':
      return { type: 'error', data: 'the execution was ended' };
    case 'failed':
      return { type: 'error', data: exit.message };
  }
}
