import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Bodies of which none is sent before the server says `100 Continue`: those of requests that another replica passes on.
 * It is said once it is clear that this replica has the runner, so that a body which would be lost here stays whole.
 */
const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/** Keeps the body of a request with `Expect: 100-continue` where it is. */
export function holdBody(req: IncomingMessage, res: ServerResponse): void {
  waiting.set(req, res);
}

/** Asks for the body, where it is held. */
export function releaseBody(req: IncomingMessage): void {
  waiting.get(req)?.writeContinue();
  waiting.delete(req);
}

/** True while none of the body is on its way. */
export function isBodyHeld(req: IncomingMessage): boolean {
  return waiting.has(req);
}
