/**
 * Loaded into a measured process before its program (`node --expose-gc --import probe.mjs …`): answers what the process
 * has used so far, over the channel to its parent, and lets go of the process when the parent does.
 *
 * With BENCH_WATCH_LOOP it also watches the event loop from the start, and each answer says for how long it was blocked at
 * most since the answer before.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 2;
const delays = process.env['BENCH_WATCH_LOOP']
  ? monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  : undefined;
delays?.enable();

process.on('message', (question) => {
  const longestBlockMs = delays && Math.max(0, delays.max / 1e6 - RESOLUTION_MS);
  if (question === 'memory') {
    globalThis.gc?.();
    globalThis.gc?.();
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const cpuMs = (user + system) / 1000;
  process.send?.({ cpuMs, residentBytes: rss, heapBytes: heapUsed + external, longestBlockMs });
  delays?.reset();
});
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel?.unref();
