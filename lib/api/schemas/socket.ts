import { PROGRAM_SIGNALS } from '../../base/program-signals.js';
import type {
  CancelMessage,
  ClientMessage,
  EofMessage,
  ForCommand,
  ResizeMessage,
  SessionClientMessage,
  SignalMessage,
  StdinMessage,
} from '../../protocol/websocket.js';
import { answer, choice, integer, object, text } from './schema.js';
import { commandId } from './values.js';

/** Messages of a client that speaks `serai.v1`. */

/** What a terminal can have: its size is kept in 16 bits. */
const size = integer(1, 65_535);

const stdin = { type: choice('stdin'), data: text('a text') };
const resize = { type: choice('resize'), cols: size, rows: size };
const signal = { type: choice('signal'), data: choice(...PROGRAM_SIGNALS) };
const eof = { type: choice('eof') };

export const stdinMessage = object<StdinMessage>(stdin, {});
export const resizeMessage = object<ResizeMessage>(resize, {});
export const signalMessage = object<SignalMessage>(signal, {});
export const eofMessage = object<EofMessage>(eof, {});

/** What all messages have; tells which of them it is. */
export const anyMessage = answer<Pick<ClientMessage, 'type'>>(
  { type: choice('stdin', 'resize', 'signal', 'eof') },
  {},
);

/** On a session socket; `exec` is beside the body of `execute` (runner.ts). */

const ofCommand = { id: commandId };

export const sessionStdinMessage = object<ForCommand<StdinMessage>>(stdin, ofCommand);
export const sessionResizeMessage = object<ForCommand<ResizeMessage>>(resize, ofCommand);
export const sessionSignalMessage = object<ForCommand<SignalMessage>>(signal, ofCommand);
export const sessionEofMessage = object<ForCommand<EofMessage>>(eof, ofCommand);
export const cancelMessage = object<CancelMessage>({ type: choice('cancel'), id: commandId }, {});

export const anySessionMessage = answer<Pick<SessionClientMessage, 'type'>>(
  { type: choice('exec', 'cancel', 'stdin', 'resize', 'signal', 'eof') },
  {},
);
