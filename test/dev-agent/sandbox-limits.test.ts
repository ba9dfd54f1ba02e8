import { expect } from 'chai';
import { silentLogger } from '../../lib/base/log.js';
import type { Logger } from '../../lib/base/log.js';
import { needs } from '../support/needs.js';
import { Conversation, SandboxBench, sh } from './support/sandbox.js';

describe('SandboxDriver: limits', () => {
  let bench: SandboxBench;

  before(async function () {
    let missing = '';
    const log: Logger = { ...silentLogger, warn: (_, fields) => (missing = JSON.stringify(fields)) };
    bench = await SandboxBench.open(this, log);
    if (missing !== '') await bench.close();
    needs(this, { isMet: missing === '', missing: `cgroups: ${missing}`, isForbidden: true });
  });
  after(() => bench?.close());

  it('tells of a main process that ran out of memory, with evidence', async () => {
    const task = await bench.start({ command: ['tail', '/dev/zero'], memoryMaxMb: 48 });
    expect(await task.exited).to.deep.equal({ exitCode: 137, signal: 0, oomKilled: true });
  });

  it('does not take an exec that ran out of memory for the task [A2-46]', async () => {
    const task = await bench.start({ memoryMaxMb: 48 });
    expect((await sh(task, 'tail /dev/zero; exit $?')).exitCode).to.equal(137);
    expect((await sh(task, 'echo alive')).stdout).to.equal('alive\n');
    await task.kill();
    expect(await task.exited).to.deep.equal({ exitCode: 137, signal: 0, oomKilled: false });
  });

  it('bounds the processes of a task and ends a fork bomb [A4-90]', async () => {
    const [task, other] = await Promise.all([bench.start(), bench.start()]);
    const bomb = await Conversation.open(task, ['sh', '-c', 'while :; do sleep 999 & echo; done']);
    bomb.exec.closeStdin();
    expect((await bomb.end()).stderr).to.match(/fork/);
    expect(bomb.stdout.length).to.be.within(200, 256);
    expect((await sh(other, 'echo fine')).stdout).to.equal('fine\n');
    const start = performance.now();
    await task.kill();
    expect(performance.now() - start).to.be.below(1500);
  });
});
