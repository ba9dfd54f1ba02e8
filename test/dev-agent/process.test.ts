import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import type { TaskHandle } from '../../lib/dev-agent/driver.js';
import { findExecutable } from '../../lib/dev-agent/process/launch.js';
import { Output } from '../../lib/dev-agent/process/output.js';
import { PipeMaker } from '../../lib/dev-agent/process/pipes.js';
import { ProcessDriver } from '../../lib/dev-agent/process/process-driver.js';
import type { ProcessEntry } from '../../lib/dev-agent/process/process-table.js';
import { members } from '../../lib/dev-agent/process/process-table.js';
import { openPty } from '../../lib/dev-agent/process/pty.js';
import { eventually } from '../support/waiting.js';
import { processesWith } from './support/processes.js';

/** Descriptors that this process has open. */
const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

describe('ProcessDriver', () => {
  let driver: ProcessDriver;
  let folder: string;

  beforeEach(() => {
    driver = new ProcessDriver();
    folder = mkdtempSync(path.join(tmpdir(), 'serai-test-'));
  });
  afterEach(async () => {
    await driver.stop();
    rmSync(folder, { recursive: true });
  });

  const start = (...command: string[]): Promise<TaskHandle> =>
    driver.startTask({
      allocationId: 'a',
      taskName: 't',
      command,
      environment: { NOMAD_TASK_NAME: 't' },
      memoryMaxMb: undefined,
      networkAccess: true,
      allocFolder: path.join(folder, 'alloc'),
    });

  async function run(
    task: TaskHandle,
    command: string[],
    tty = false,
  ): Promise<{ text: string; exitCode: number }> {
    const exec = await task.exec({ command, tty });
    let text = '';
    exec.onOutput((_stream, chunk) => (text += chunk.toString()));
    exec.closeStdin();
    return { exitCode: await exec.exitCode, text };
  }

  it('ends one of several tasks that were started at once, and leaves the others alone', async () => {
    const tasks = await Promise.all(
      ['a', 'b', 'c'].map((allocationId) =>
        driver.startTask({
          allocationId,
          taskName: 't',
          command: ['sleep', 'infinity'],
          environment: {},
          memoryMaxMb: undefined,
          networkAccess: true,
          allocFolder: path.join(folder, allocationId, 'alloc'),
        }),
      ),
    );
    let ended = 0;
    for (const task of tasks) void task.exited.then(() => (ended += 1));
    await tasks[1]?.kill();
    expect(ended).to.equal(1);
    for (const task of [tasks[0], tasks[2]]) {
      expect(task && (await run(task, ['echo', 'here']))).to.deep.equal({ text: 'here\n', exitCode: 0 });
    }
    expect(ended).to.equal(1);
  });

  it('gives a task its folder as home and working directory, and little of its own environment', async () => {
    process.env['SECRET_OF_THE_AGENT'] = 'x';
    const task = await start('sleep', 'infinity');
    const { text } = await run(task, ['sh', '-c', 'pwd; echo "$HOME"; echo "$NOMAD_TASK_NAME"; env']);
    delete process.env['SECRET_OF_THE_AGENT'];
    const [here, home, name] = text.split('\n');
    expect(here).to.equal(path.join(folder, 'task-t'));
    expect(home).to.equal(here);
    expect(name).to.equal('t');
    expect(text).not.to.contain('SECRET_OF_THE_AGENT');
  });

  it('gives programs pipes that they can open by name, and no descriptors beyond', async () => {
    const task = await start('sleep', 'infinity');
    const script = 'echo out > /dev/stdout; echo err > /dev/stderr; cat < /dev/stdin; ls -1 /proc/self/fd';
    for (const tty of [false, true]) {
      const exec = await task.exec({ command: ['sh', '-c', script], tty });
      const said = { stdout: '', stderr: '' };
      exec.onOutput((stream, chunk) => (said[stream] += chunk.toString()));
      await exec.write(Buffer.from(tty ? '\u0004' : ''));
      exec.closeStdin();
      expect(await exec.exitCode).to.equal(0);
      const stdout = said.stdout.replaceAll('\r', '').replace('^D\b\b', '');
      expect([stdout, said.stderr]).to.deep.equal(
        tty ? ['out\nerr\n0\n1\n2\n3\n', ''] : ['out\n0\n1\n2\n3\n', 'err\n'],
      );
    }
  });

  it('ends what a task started, wherever that went', async () => {
    const task = await start('sh', '-c', 'setsid sleep 7501 & nohup sleep 7501 & sleep 7501');
    const lost = await task.exec({ command: ['sh', '-c', '(setsid sleep 7501 &) ; sleep 7501'], tty: true });
    await eventually('the processes', () => processesWith('sleep\x007501').length === 5);
    await task.kill();
    expect(processesWith('sleep\x007501')).to.deep.equal([]);
    expect(await lost.exitCode).to.equal(137);
    expect(await task.exited).to.deep.equal({ exitCode: 137, signal: 9, oomKilled: false });
  });

  it('leaves other tasks alone when it ends one', async () => {
    const [one, other] = [await start('sleep', '7502'), await start('sleep', '7503')];
    await one.kill();
    expect(processesWith('sleep\x007503')).to.have.length(1);
    await other.kill();
  });

  it('tells how a main process ended', async () => {
    expect(await (await start('sh', '-c', 'exit 3')).exited).to.deep.equal({
      exitCode: 3,
      signal: 0,
      oomKilled: false,
    });
    const killed = await (await start('sh', '-c', 'kill -TERM $$')).exited;
    expect(killed).to.deep.equal({ exitCode: 143, signal: 15, oomKilled: false });
  });

  it('refuses a command that does not exist', async () => {
    const failure: unknown = await start('/no/such').catch((error: unknown) => error);
    expect(failure).to.include({ name: 'TaskStartError', message: 'binary "/no/such" could not be found' });
  });

  it('gives a fresh folder to every start, and removes it at the end', async () => {
    const first = await start('sleep', 'infinity');
    await run(first, ['sh', '-c', 'echo x > left']);
    await first.kill();
    const second = await start('sleep', 'infinity');
    expect((await run(second, ['ls'])).text).to.equal('');
    await second.kill();
    await eventually('the end of the folder', () => readdirSync(folder).length === 0);
  });

  it('keeps no descriptor of execs that have ended', async () => {
    const task = await start('sleep', 'infinity');
    await run(task, ['true']);
    await run(task, ['true'], true);
    const before = openDescriptors();
    for (let count = 0; count < 8; count += 1) {
      await run(task, ['true']);
      await run(task, ['true'], true);
    }
    await eventually('the descriptors to be closed', () => openDescriptors() <= before);
  });

  it('starts nothing once it is stopped', async () => {
    await driver.stop();
    const failure: unknown = await start('true').catch((error: unknown) => error);
    expect(failure).to.include({ name: 'TaskStartError' });
  });
});

describe('PipeMaker', () => {
  it('leaves no descriptor, taken or not', async () => {
    const before = openDescriptors();
    const maker = new PipeMaker();
    const taken = await Promise.all([maker.take(), maker.take(), maker.take()]);
    for (const pipes of taken) {
      pipes.closeChildEnds();
      pipes.destroy();
    }
    await maker.close();
    await eventually('the descriptors to be closed', () => openDescriptors() <= before);
  });
});

describe('a pty', () => {
  it('is closed on both sides, used or not', async () => {
    const before = openDescriptors();
    const pty = openPty(80, 24);
    pty.resize(100, 30);
    pty.close();
    const other = openPty(80, 24);
    other.finish();
    await eventually('the descriptors to be closed', () => openDescriptors() <= before);
    pty.resize(80, 24);
  });
});

describe('members of a task', () => {
  const entry = (pid: number, parent: number, session: number, mark = ''): ProcessEntry => ({
    pid,
    parent,
    session,
    environment: mark === '' ? 'A=b' : `A=b\0DEV_AGENT_TASK=${mark}\0C=d`,
  });

  it('are those with its mark, in its sessions, and their descendants', () => {
    const table = [
      entry(1, 0, 1),
      entry(10, 1, 10, 'me.1'),
      entry(11, 10, 11),
      entry(12, 11, 12),
      entry(20, 1, 99),
      entry(30, 1, 30, 'me.10'),
      entry(40, 1, 40, 'not-me.1'),
    ];
    expect(members(table, 'me.1', new Set([99])).sort()).to.deep.equal([10, 11, 12, 20]);
  });

  it('are found whatever the order of the list, and never include a stranger', () => {
    const parents = fc.array(fc.nat({ max: 19 }), { minLength: 20, maxLength: 20 });
    fc.assert(
      fc.property(parents, fc.nat({ max: 19 }), (parentOf, marked) => {
        const table = parentOf.map((parent, pid) =>
          entry(pid + 100, parent + 100, 0, pid === marked ? 'x' : ''),
        );
        const found = new Set(members(table, 'x', new Set()));
        const reached = (pid: number): boolean => {
          const seen = new Set<number>();
          for (let at = pid; !seen.has(at); at = parentOf[at] ?? at) {
            if (at === marked) return true;
            seen.add(at);
          }
          return false;
        };
        return parentOf.every((_parent, pid) => found.has(pid + 100) === reached(pid));
      }),
    );
  });
});

describe('findExecutable', () => {
  it('says in the words of Go what is wrong', () => {
    const message = (file: string): string => {
      try {
        return findExecutable(file, '/usr/bin:/bin', '/');
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(message('sh')).to.match(/\/bin\/sh$/);
    expect(message('no-such')).to.equal('exec: "no-such": executable file not found in $PATH');
    expect(message('')).to.equal('exec: "": executable file not found in $PATH');
    expect(message('/no/such')).to.equal('fork/exec /no/such: no such file or directory');
    expect(message('/proc/version')).to.equal('fork/exec /proc/version: permission denied');
    expect(message('bin/sh')).to.equal('/bin/sh');
  });
});

describe('Output', () => {
  it('delivers everything once, in order, however it is paused', async () => {
    const step = fc.oneof(
      fc.string({ minLength: 1, maxLength: 3 }).map((text) => ({ kind: 'push' as const, text })),
      fc.constantFrom({ kind: 'pause' as const }, { kind: 'resume' as const }, { kind: 'listen' as const }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step), async (steps) => {
        const output = new Output();
        const got: string[] = [];
        const pushed: string[] = [];
        const listen = (): void => output.listen((_stream, chunk) => got.push(chunk.toString()));
        for (const one of steps) {
          if (one.kind === 'push') {
            pushed.push(one.text);
            output.push('stdout', Buffer.from(one.text));
          } else if (one.kind === 'listen') listen();
          else output[one.kind]();
        }
        listen();
        output.resume();
        await output.delivered();
        return got.join('') === pushed.join('');
      }),
    );
  });

  it('drops everything once nobody listens any more', async () => {
    const output = new Output();
    output.pause();
    output.push('stdout', Buffer.from('x'));
    output.discard();
    output.push('stdout', Buffer.from('y'));
    const got: string[] = [];
    output.listen((_stream, chunk) => got.push(chunk.toString()));
    await output.delivered();
    expect(got).to.deep.equal([]);
  });
});
