import type { Measure } from './measure.js';
import { Samples } from './measure.js';

const KEYS = 100;
const PAUSE_MS = 10;
const RUNS = 3;

/** From a key that is typed to its echo by the terminal. */
export const keystrokes: Measure = async (stack) => {
  const samples = new Samples();
  for (const party of stack.services) {
    const runner = await party.client.claim();
    await stack.settled();
    let [typedMs, count] = [0, 0];
    await party.client.run(runner, 'echo ready; cat', undefined, (socket) => {
      if (count > KEYS) return;
      if (count > 0) samples.add('keystroke echo', party.name, performance.now() - typedMs);
      count += 1;
      setTimeout(() => {
        typedMs = performance.now();
        socket.send(count > KEYS ? '\n\x04' : 'x');
      }, PAUSE_MS);
    });
    await party.client.release(runner);
  }
  return samples.figures;
};

/** From the request to the exit, all bytes counted. */
export const output: Measure = async (stack, { outputBytes: wanted }) => {
  const samples = new Samples();
  for (let run = 0; run < RUNS; run += 1) {
    for (const party of stack.services) {
      const runner = await party.client.claim();
      await stack.settled();
      const command = `head -c ${wanted} /dev/zero | tr '\\0' a`;
      const { endMs, outputBytes } = await party.client.run(runner, command);
      if (outputBytes !== wanted) throw new Error(`${wanted} bytes of output came as ${outputBytes}`);
      samples.add(`${wanted / 1e6} MB of output`, party.name, outputBytes / 1000 / endMs, 'MB/s');
      await party.client.release(runner);
    }
  }
  return samples.figures;
};
