import type WebSocket from 'ws';
import type { Message } from '../client.js';
import type { Measure } from './measure.js';
import { pause, Samples } from './measure.js';

/** Says the number that was given to a process last (the fifth field), without starting one itself. */
const LAST = 'read -r _ _ _ _ last < /proc/loadavg; echo "last=$last."';
const WATCHER = `while read -r _; do ${LAST}; done`;
const SETTLED_MS = 400;

/**
 * Processes that a runner starts for one command, by the numbers that its PID namespace gives out. A watcher, an
 * execution of its own that starts none, is asked before the command, the moment its exit is here, and when all is quiet
 * again. What the runner has begun to tidy up by then counts too, so the second figure is rather too high.
 */
export const forks: Measure = async (stack, { rounds }) => {
  const samples = new Samples();
  if (stack.driver !== 'sandbox') return []; // its runners have no numbers of their own
  for (const party of stack.services) {
    const runner = await party.client.claim();
    await stack.settled();
    const watcher = await Watcher.open(await party.client.open(runner, WATCHER, false));
    for (let round = 0; round < rounds; round += 1) {
      await pause(SETTLED_MS);
      const before = await watcher.last();
      await party.client.run(runner, 'echo hi', 'hi');
      const atExit = await watcher.last();
      await pause(SETTLED_MS);
      const settled = await watcher.last();
      samples.add('processes started for a command until its exit is known', party.name, atExit - before, '');
      samples.add('processes started for a command in all', party.name, settled - before, '');
    }
    watcher.close();
    await party.client.release(runner);
  }
  return samples.figures;
};

class Watcher {
  readonly #socket: WebSocket;
  #answer: (last: number) => void = () => undefined;
  #text = '';

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message;
      if (message.type !== 'stdout') return;
      this.#text += String(message.data);
      const [, last] = /last=(\d+)\./.exec(this.#text) ?? [];
      if (last === undefined) return;
      this.#text = '';
      this.#answer(Number(last));
    });
  }

  static async open(socket: WebSocket): Promise<Watcher> {
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return new Watcher(socket);
  }

  last(): Promise<number> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#socket.send('\n');
    });
  }

  close(): void {
    this.#socket.close();
  }
}
