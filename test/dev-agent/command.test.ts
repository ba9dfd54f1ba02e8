import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { runAgent } from '../../lib/dev-agent/command.js';
import { eventually } from '../support/waiting.js';
import { agentFolders, processesWith } from './support/processes.js';
import { AgentClient, sleeper } from './support/raw-agent.js';

const script = path.join(import.meta.dirname, 'support/agent-process.ts');

interface Spawned {
  readonly child: ChildProcess;
  readonly client: AgentClient;
}

async function spawnAgent(...args: string[]): Promise<Spawned> {
  const child = spawn(process.execPath, ['--import', 'tsx', script, '--port', '0', ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await eventually('the ready line', () => said.includes('\n'), 20_000);
  const [, address = ''] = /^agent ready (http:\/\/127\.0\.0\.1:\d+) driver=\w+\n$/.exec(said) ?? [];
  expect(address, said).not.to.equal('');
  return { child, client: new AgentClient(address) };
}

/** Starts what is hard to find again: children of children, in sessions of their own, in a terminal and without. */
async function leaveTraces({ client }: Spawned, time: string): Promise<void> {
  const id = await client.run(sleeper('7-traces'));
  for (const tty of [false, true]) {
    const exec = client.exec(
      id,
      ['sh', '-c', `setsid sleep ${time} & nohup sleep ${time} & echo ok; sleep ${time}`],
      {
        tty,
      },
    );
    await exec.until('ok');
  }
  // Without an environment, but still a child of the task.
  const bare = client.exec(id, ['sh', '-c', `setsid env -i sleep ${time} & echo ok; wait`]);
  await bare.until('ok');
  await eventually('the processes', () => processesWith(`sleep\0${time}`).length === 7);
}

describe('serai agent', () => {
  it('leaves no process and no folder 3 s after it was killed', async () => {
    const before = agentFolders();
    const spawned = await spawnAgent('--driver', 'process');
    await leaveTraces(spawned, '7301');
    spawned.child.kill('SIGKILL');
    await once(spawned.child, 'exit');
    await eventually('the end of all processes', () => processesWith('7301').length === 0, 3000);
    await eventually(
      'the end of the task folders',
      () => agentFolders().filter((name) => !before.includes(name)).length === 0,
      3000,
    );
  }).timeout(40_000);

  it('ends cleanly on SIGTERM', async () => {
    const spawned = await spawnAgent('--driver', 'process');
    await leaveTraces(spawned, '7302');
    spawned.child.kill('SIGTERM');
    const [code] = (await once(spawned.child, 'exit')) as [number | null];
    expect(code).to.equal(0);
    expect(processesWith('7302')).to.deep.equal([]);
  }).timeout(40_000);

  it('ends when its standard input does, with --die-with-parent', async () => {
    const spawned = await spawnAgent('--driver', 'process', '--die-with-parent');
    await leaveTraces(spawned, '7303');
    spawned.child.stdin?.end();
    const [code] = (await once(spawned.child, 'exit')) as [number | null];
    expect(code).to.equal(0);
    expect(processesWith('7303')).to.deep.equal([]);
  }).timeout(40_000);

  /** Runs the command in this process until `end` is called. */
  function run(...args: string[]): {
    code: Promise<number>;
    end: () => void;
    out: () => string;
    err: () => string;
  } {
    const signals = new EventEmitter();
    const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
    let [out, err] = ['', ''];
    stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const code = runAgent(args, { stdout, stderr, stdin, signals });
    return { code, end: () => void signals.emit('SIGINT'), out: () => out, err: () => err };
  }

  it('says at start that the process driver does not isolate', async () => {
    const { code, end, out, err } = run('--port', '0', '--driver', 'process');
    await eventually('the ready line', () => out().includes('driver=process'));
    expect(err()).to.contain('does not isolate');
    end();
    expect(await code).to.equal(0);
  });

  it('refuses what it does not understand, naming the flag', async () => {
    const cases: [string[], RegExp][] = [
      [['--port', '99999'], /--port takes a whole number up to 65535, not "99999"/],
      [['--exec-delay', '60'], /--exec-delay takes a time such as 60ms or 1.5s, not "60"/],
      [['--driver', 'magic'], /--driver takes one of .*process.*, not "magic"/],
      [['--max-starts', '0'], /--max-starts takes a number above 0/],
      [['--max-execs-opening', '0'], /--max-execs-opening takes a number above 0/],
      [['--namespace', 'a b'], /--namespace takes up to 128 letters, digits and hyphens, not "a b"/],
      [['--nonsense'], /--nonsense/],
    ];
    for (const [args, message] of cases) {
      const { code, err } = run(...args);
      expect(await code).to.equal(2);
      expect(err()).to.match(message);
    }
  });

  it('fails with a sentence when the port is taken', async () => {
    const first = run('--port', '0', '--driver', 'simulated');
    await eventually('the ready line', () => first.out().includes('\n'));
    const [, port = ''] = /:(\d+) /.exec(first.out()) ?? [];
    const second = run('--port', port, '--driver', 'simulated');
    expect(await second.code).to.equal(1);
    expect(second.err()).to.contain('EADDRINUSE');
    first.end();
    expect(await first.code).to.equal(0);
  });

  it('has the namespaces that it was given beside default', async () => {
    const { code, end, out } = run(
      '--port',
      '0',
      '--driver',
      'simulated',
      '--namespace',
      'a',
      '--namespace',
      'b',
    );
    await eventually('the ready line', () => out().includes('\n'));
    const answer = await fetch(`${/http:\S+/.exec(out())?.[0]}/v1/namespaces`);
    const names = ((await answer.json()) as { Name: string }[]).map(({ Name }) => Name);
    expect(names).to.deep.equal(['default', 'a', 'b']);
    end();
    expect(await code).to.equal(0);
  });

  it('answers --help', async () => {
    const { code, out } = run('--help');
    expect(await code).to.equal(0);
    expect(out()).to.contain('--exec-delay');
  });
});
