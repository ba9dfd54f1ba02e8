import { messageOf } from '../../base/errors.js';
import type { CancelMessage, ExecMessage } from '../../protocol/websocket.js';
import { parseJson, validateSessionMessage } from './client-message.js';
import type { ClientRequest } from './dialect.js';
import { toRequest } from './dialect.js';

/** What a frame of the client of a session asks for. */
export type SessionRequest =
  | ExecMessage
  | CancelMessage
  /** Something for the program that runs; its id, where one was given, has to be that of the command. */
  | { readonly type: 'input'; readonly id: string | undefined; readonly request: ClientRequest }
  /** It is no message. `id` is what it calls its command, as far as that can be read. */
  | {
      readonly type: 'unreadable';
      readonly id: string | undefined;
      readonly isExec: boolean;
      readonly why: string;
    };

const LONGEST_ID = 128;

export function readSessionFrame(frame: Buffer, isBinary: boolean): SessionRequest {
  if (isBinary) return { type: 'input', id: undefined, request: { type: 'stdin', bytes: frame } };
  let value: unknown;
  try {
    value = parseJson(frame.toString('utf8'));
    const message = validateSessionMessage(value);
    if (message.type === 'exec' || message.type === 'cancel') return message;
    return { type: 'input', id: message.id, request: toRequest(message) };
  } catch (error) {
    return { type: 'unreadable', ...addressOf(value), why: messageOf(error) };
  }
}

/** Whom a value that is no message is about. */
function addressOf(value: unknown): { readonly id: string | undefined; readonly isExec: boolean } {
  if (typeof value !== 'object' || value === null) return { id: undefined, isExec: false };
  const id: unknown = 'id' in value ? value.id : undefined;
  return {
    id: typeof id === 'string' && isCommandId(id) ? id : undefined,
    isExec: 'type' in value && value.type === 'exec',
  };
}

/** As the schema counts: characters, not UTF-16 units. */
function isCommandId(id: string): boolean {
  return id !== '' && id.length <= 2 * LONGEST_ID && [...id].length <= LONGEST_ID;
}
