import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerHeaders } from './hop-headers.js';

/**
 * Passes the owner's answer on as it is, at the client's pace. One that breaks off is cut for the client too, so that it is
 * never taken for whole; a client that leaves ends it at the owner. Resolves when the answer is over for both. Never
 * rejects.
 */
export async function relayAnswer(response: IncomingMessage, res: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    res.once('close', () => {
      response.destroy();
      resolve();
    });
    response.once('close', () => {
      if (!response.complete) res.destroy();
    });
    if (res.destroyed) {
      response.destroy();
      resolve();
      return;
    }
    res.writeHead(response.statusCode ?? 500, response.statusMessage, answerHeaders(response));
    response.pipe(res);
    // The head of an answer whose body comes later leaves now; mostly both are here together and leave together.
    setImmediate(() => {
      if (!res.destroyed) res.flushHeaders();
    });
  });
}
