import { PROGRAM_SIGNALS } from '../../base/program-signals.js';
import type {
  ClientMessage,
  EofMessage,
  ResizeMessage,
  SignalMessage,
  StdinMessage,
} from '../../protocol/websocket.js';
import { answer, choice, integer, object, text } from './schema.js';

/** Messages of a client that speaks `serai.v1`. */

/** What a terminal can have: its size is kept in 16 bits. */
const size = integer(1, 65_535);

export const stdinMessage = object<StdinMessage>({ type: choice('stdin'), data: text('a text') }, {});

export const resizeMessage = object<ResizeMessage>({ type: choice('resize'), cols: size, rows: size }, {});

export const signalMessage = object<SignalMessage>(
  { type: choice('signal'), data: choice(...PROGRAM_SIGNALS) },
  {},
);

export const eofMessage = object<EofMessage>({ type: choice('eof') }, {});

/** What all messages have; tells which of them it is. */
export const anyMessage = answer<Pick<ClientMessage, 'type'>>(
  { type: choice('stdin', 'resize', 'signal', 'eof') },
  {},
);
