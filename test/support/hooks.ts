/**
 * Root hooks: after the whole run nothing that a test opened may still be alive, so mocha can run without `--exit`.
 */
export const mochaHooks = {
  afterAll(this: Mocha.Context, done: () => void): void {
    const allowed = new Set(['TTYWrap', 'PipeWrap', 'FSReqCallback', 'TCPSocketWrap', 'Immediate']);
    // One turn of the loop lets sockets that were just closed leave the list.
    setImmediate(() => {
      const alive = process.getActiveResourcesInfo().filter((name) => !allowed.has(name));
      if (alive.some((name) => name === 'TCPServerWrap' || name === 'ProcessWrap')) {
        throw new Error(`left alive after the tests: ${alive.join(', ')}`);
      }
      done();
    });
  },
};
