import type { Exit } from '../../execution/api.js';
import type { ServerMessage } from '../../protocol/websocket.js';
import { OUT_OF_MEMORY_TEXT, OUTPUT_LIMIT_TEXT } from '../../protocol/websocket.js';

/** The one message that ends a socket. A hang-up is the client's own doing; it reads this only if it is still there. */
export function exitMessage(exit: Exit): ServerMessage {
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
