/**
 * Loaded into a measured process before its program (`node --expose-gc --import probe.mjs …`): answers what the process
 * has used so far, over the channel to its parent, and lets go of the process when the parent does.
 */
process.on('message', (question) => {
  if (question === 'memory') {
    globalThis.gc?.();
    globalThis.gc?.();
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1000, residentBytes: rss, heapBytes: heapUsed + external });
});
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel?.unref();
