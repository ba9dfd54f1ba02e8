import { WebSocket } from 'ws';

/** The status that an upgrade is refused with. */
export function upgradeStatus(
  url: string,
  { headers = {}, protocols = [] }: { headers?: Record<string, string>; protocols?: string[] },
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, protocols, { headers });
    socket.once('unexpected-response', (_req, res) => {
      res.resume();
      resolve(res.statusCode);
    });
    socket.once('open', () => reject(new Error('the socket opened')));
    socket.on('error', () => undefined);
  });
}
