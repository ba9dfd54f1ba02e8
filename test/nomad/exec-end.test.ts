import { expect } from 'chai';
import type { ExecSession } from '../../lib/nomad/api.js';
import type { ScriptedExec } from '../support/scripted-exec.js';
import { eventually } from '../support/waiting.js';
import { collect, ExecBench } from './support/exec-bench.js';

describe('the end of a command', () => {
  let bench: ExecBench;

  beforeEach(async () => {
    bench = await ExecBench.open();
  });

  afterEach(() => bench.close());

  it('delivers output that comes after the exit frame [A2-38]', async () => {
    const [session, exec] = await bench.exec();
    const output = collect(session);
    await exec.output('stdout', 'a');
    await exec.exit(0);
    await exec.output('stdout', 'b');
    await exec.output('stdout', 'c');
    exec.close(1000);
    expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
    expect(output.stdout).to.equal('abc');
  });

  it('gives late output a second after the last of it, then drops the socket [A2-38]', async () => {
    const [session, exec] = await bench.exec();
    const output = collect(session);
    await exec.exit(3);
    for (const late of ['a', 'b', 'c']) {
      await exec.output('stdout', late);
      await eventually('the late output', () => output.stdout.endsWith(late));
      await bench.clock.advance(999);
    }
    expect(output.stdout).to.equal('abc');
    await bench.clock.advance(1);
    expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 3 });
    await exec.closed();
  });

  it('does not give late output up while the reader holds it back [A2-38]', async () => {
    const [session, exec] = await bench.exec();
    let bytes = 0;
    session.onOutput((_stream, chunk) => {
      bytes += chunk.length;
      if (bytes === 1) session.pause();
    });
    await exec.exit(0);
    await exec.output('stdout', 'x');
    await eventually('the first byte', () => bytes === 1);
    await exec.output('stdout', 'y'.repeat(1000));
    await bench.clock.advance(60_000);
    session.resume();
    exec.close(1000);
    expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
    expect(bytes).to.equal(1001);
  });

  for (const [how, drop] of [
    ['a close', (exec: ScriptedExec) => exec.close(1000)],
    ['a reset', (exec: ScriptedExec) => exec.reset()],
    ['an end without a close', (exec: ScriptedExec) => exec.hangUp()],
    ['a close that says failure', (exec: ScriptedExec) => exec.close(1011, 'late failure')],
  ] as const) {
    it(`keeps the exit where ${how} follows it [A2-39]`, async () => {
      const [session, exec] = await bench.exec();
      const output = collect(session);
      await exec.output('stdout', 'all');
      await exec.exit(0);
      await exec.output('stdout', '.'); // once this is there, so is the exit: a reset takes back what was not read
      await eventually('the output', () => output.stdout === 'all.');
      drop(exec);
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
    });
  }

  for (const [how, drop, code] of [
    ['1000', (exec: ScriptedExec) => exec.close(1000), 1000],
    ['1011 and a reason', (exec: ScriptedExec) => exec.close(1011, 'plugin is shut down'), 1011],
    ['a reset', (exec: ScriptedExec) => exec.reset(), 1006],
    ['an end without a close', (exec: ScriptedExec) => exec.hangUp(), 1006],
  ] as const) {
    it(`is no exit where the socket ends with ${how} and no exit frame [A2-40]`, async () => {
      const [session, exec] = await bench.exec();
      const output = collect(session);
      await exec.output('stdout', 'part');
      await eventually('the output', () => output.stdout === 'part');
      drop(exec);
      expect(await session.end).to.include({ kind: 'closed', code });
    });
  }

  it('takes the first of several exits, and only one with a result', async () => {
    const [session, exec] = await bench.exec();
    await exec.send({ exited: true });
    await exec.exit(7);
    await exec.exit(8);
    exec.close(1000);
    expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 7 });
  });

  it('settles once, with nothing thrown, in every order of exit, close and destroy [A2-63]', async () => {
    const steps = {
      exit: (exec: ScriptedExec) => void exec.exit(0),
      close: (exec: ScriptedExec) => exec.close(1000),
      reset: (exec: ScriptedExec) => exec.reset(),
      destroy: (_exec: ScriptedExec, session: ExecSession) => session.destroy(),
    };
    for (const first of Object.values(steps)) {
      for (const second of Object.values(steps)) {
        const [session, exec] = await bench.exec();
        const ends: unknown[] = [];
        void session.end.then((end) => ends.push(end));
        first(exec, session);
        second(exec, session);
        session.destroy();
        session.destroy();
        await session.end;
        await session.write(Buffer.from('x'));
        session.closeStdin();
        session.resize(1, 1);
        session.pause();
        session.resume();
        await exec.closed();
        expect(ends).to.have.length(1);
      }
    }
  });
});
