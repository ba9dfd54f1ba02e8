import { ServiceError } from '../../base/errors.js';
import type { ClientMessage, SessionClientMessage } from '../../protocol/websocket.js';
import type { Validator } from '../middleware/validate.js';
import { createValidator } from '../middleware/validate.js';
import { execMessage } from '../schemas/runner.js';
import type { Schema } from '../schemas/schema.js';
import * as schemas from '../schemas/socket.js';

type Validators<M extends { readonly type: string }> = {
  readonly [T in M['type']]: Validator<Extract<M, { readonly type: T }>>;
};

function validator<T>(schema: Schema<T>): Validator<T> {
  return createValidator(schema, 'the message');
}

const validateType = validator(schemas.anyMessage);
const validators: Validators<ClientMessage> = {
  stdin: validator(schemas.stdinMessage),
  resize: validator(schemas.resizeMessage),
  signal: validator(schemas.signalMessage),
  eof: validator(schemas.eofMessage),
};

const validateSessionType = validator(schemas.anySessionMessage);
const sessionValidators: Validators<SessionClientMessage> = {
  exec: validator(execMessage),
  cancel: validator(schemas.cancelMessage),
  stdin: validator(schemas.sessionStdinMessage),
  resize: validator(schemas.sessionResizeMessage),
  signal: validator(schemas.sessionSignalMessage),
  eof: validator(schemas.sessionEofMessage),
};

/** Reads one message of a client that speaks `serai.v1`. INVALID_REQUEST, in words for that client, where it is none. */
export function parseClientMessage(text: string): ClientMessage {
  const value = parseJson(text);
  return validators[validateType(value).type](value);
}

/** Judges one message, already read from JSON, of the client of a session. INVALID_REQUEST as above. */
export function validateSessionMessage(value: unknown): SessionClientMessage {
  return sessionValidators[validateSessionType(value).type](value);
}

/** INVALID_REQUEST for a text that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the message must be JSON'); // the parser's words may quote a secret
  }
}
