import { ServiceError } from '../../base/errors.js';
import type { ClientMessage } from '../../protocol/websocket.js';
import type { Validator } from '../middleware/validate.js';
import { createValidator } from '../middleware/validate.js';
import type { Schema } from '../schemas/schema.js';
import { anyMessage, eofMessage, resizeMessage, signalMessage, stdinMessage } from '../schemas/socket.js';

function validator<T>(schema: Schema<T>): Validator<T> {
  return createValidator(schema, 'the message');
}

const validateType = validator(anyMessage);

const VALIDATORS: { readonly [T in ClientMessage['type']]: Validator<Extract<ClientMessage, { type: T }>> } =
  {
    stdin: validator(stdinMessage),
    resize: validator(resizeMessage),
    signal: validator(signalMessage),
    eof: validator(eofMessage),
  };

/** Reads one message of a client that speaks `serai.v1`. INVALID_REQUEST, in words for that client, where it is none. */
export function parseClientMessage(text: string): ClientMessage {
  const value = parseJson(text);
  const { type } = validateType(value);
  return VALIDATORS[type](value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the message must be JSON'); // the parser's words may quote a secret
  }
}
