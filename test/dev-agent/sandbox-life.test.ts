import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { silentLogger } from '../../lib/base/log.js';
import { TaskStartError } from '../../lib/dev-agent/driver.js';
import { parseMountInfo } from '../../lib/dev-agent/sandbox/mount-table.js';
import { SandboxDriver } from '../../lib/dev-agent/sandbox/sandbox-driver.js';
import { eventually } from '../support/waiting.js';
import { processesWith } from './support/processes.js';
import { Conversation, SandboxBench, sh } from './support/sandbox.js';

/** What a driver makes in the folder that it is given. */
const OWN_FOLDER = `serai-sandbox-${process.getuid?.() ?? 0}`;

/** Three seconds are promised; a machine that runs other tests beside this one may need more. */
const LIMIT_MS = 6_000;

/** Cgroups of the machine whose name holds `text`. */
function cgroupsWith(text: string): string[] {
  return parseMountInfo(readFileSync('/proc/self/mountinfo', 'utf8'))
    .filter(
      ({ type, superOptions }) => type === 'cgroup2' || superOptions.some((name) => /memory|pids/.test(name)),
    )
    .flatMap(({ mountPoint }) => readdirSync(mountPoint, { recursive: true, encoding: 'utf8' }))
    .filter((name) => name.includes(text));
}

describe('SandboxDriver: life', () => {
  let bench: SandboxBench;

  beforeEach(async function () {
    bench = await SandboxBench.open(this);
  });
  afterEach(() => bench?.close());

  it('tells how the main process ended, and ends the rest with it', async () => {
    const task = await bench.start({
      command: ['sh', '-c', 'until [ -e /tmp/go ]; do sleep 0.01; done; exit 7'],
    });
    const bystander = await Conversation.open(task, ['sleep', '4711']);
    await sh(task, 'touch /tmp/go');
    expect(await task.exited).to.deep.equal({ exitCode: 7, signal: 0, oomKilled: false });
    bystander.exec.closeStdin();
    expect((await bystander.end()).exitCode).to.equal(137);
    await eventually('the end of the rest', () => processesWith('4711').length === 0);
    expect(
      await task.exec({ command: ['true'], tty: false }).catch((error: Error) => error.message),
    ).to.equal('the task is not running');
  });

  it('refuses a main command that does not exist, and leaves nothing of the attempt', async () => {
    const error = await bench.start({ command: ['no-such-command'] }).catch((reason: unknown) => reason);
    expect(error)
      .to.be.instanceOf(TaskStartError)
      .with.property('message', 'exec: "no-such-command": executable file not found in $PATH');
    const parent = path.join(bench.folder, OWN_FOLDER);
    const [state = ''] = await readdir(parent);
    expect(await readdir(path.join(parent, state))).to.deep.equal(['check', 'layer']);
  });

  it('kills everything at once: what is stopped, ignores signals, or left its session [A2-47]', async () => {
    const task = await bench.start();
    const ready = await Conversation.open(task, [
      'sh',
      '-c',
      `trap '' INT TERM HUP; setsid -f sleep 4712; sh -c 'kill -STOP $$' & (trap '' TERM; while :; do sleep 4713; done) &
       i=0; while [ $i -lt 80 ]; do sleep 4714 & i=$((i+1)); done; echo ready; while :; do :; done`,
    ]);
    const terminal = await Conversation.open(task, ['sh', '-c', 'echo ready; exec sleep 4715'], true);
    await Promise.all([ready.sees(/ready/), terminal.sees(/ready/)]);
    const start = performance.now();
    await task.kill();
    expect(performance.now() - start).to.be.below(1500);
    expect(['4712', '4713', '4714', '4715'].flatMap(processesWith)).to.deep.equal([]);
    expect((await task.exited).exitCode).to.equal(137);
    ready.exec.closeStdin();
    expect((await ready.end()).exitCode).to.equal(137);
    expect((await terminal.end()).exitCode).to.equal(137);
  });

  it('reaps orphans, also after somebody killed what keeps process 1 waiting', async () => {
    const task = await bench.start();
    expect((await sh(task, 'pkill -9 -x cat')).exitCode).to.equal(0);
    await sh(task, 'for i in 1 2 3 4 5; do (sleep 0.01 & ) ; done; (setsid sh -c "exit 3" &)');
    await eventually('no zombie and no sleeper', async () => {
      const { stdout } = await sh(task, 'ps -eo stat=,args= | grep -E "^Z|sleep 0" | grep -v grep');
      return stdout === '';
    });
  });

  it('shows a task its own processes only', async () => {
    const [task, other] = await Promise.all([bench.start({ command: ['sleep', '4716'] }), bench.start()]);
    const { stdout } = await sh(other, 'ps -eo pid=,args=; ls -d /proc/[0-9]*');
    expect(stdout).to.include('sleep infinity').and.not.to.include('4716').and.not.to.include('node');
    const [host = ''] = processesWith('4716');
    expect((await sh(other, `kill -9 ${host}`)).exitCode).not.to.equal(0);
    expect((await sh(task, 'true')).exitCode).to.equal(0);
  });

  it('has a loopback interface of its own, and the host network only where it is asked for', async () => {
    const [apart, shared] = await Promise.all([bench.start(), bench.start({ networkAccess: true })]);
    const listen =
      "python3 -c \"import socket; s=socket.create_server(('127.0.0.1',80)); socket.create_connection(('127.0.0.1',80)); print(1)\"";
    expect((await sh(apart, `${listen} 2>&1`)).stdout).to.equal('1\n');
    expect((await sh(apart, 'tail -n +3 /proc/net/dev | cut -d: -f1')).stdout.trim()).to.equal('lo');
    const host = readFileSync('/proc/self/net/dev', 'utf8').split('\n').length;
    expect(Number((await sh(shared, 'wc -l < /proc/self/net/dev')).stdout)).to.equal(host - 1);
  });

  it('leaves nothing behind when it is stopped', async () => {
    const mountsBefore = readFileSync('/proc/self/mountinfo', 'utf8');
    const tasks = await Promise.all([bench.start(), bench.start({ command: ['sleep', '4717'] })]);
    await Conversation.open(tasks[0], ['sleep', '4718']);
    await Conversation.open(tasks[1], ['sleep', '4719'], true);
    const late = bench.start().catch((error: unknown) => error);
    await bench.driver.stop();
    await late;
    expect(['4717', '4718', '4719', bench.folder].flatMap(processesWith)).to.deep.equal([]);
    expect(await readdir(bench.folder)).to.deep.equal(['alloc-1', 'alloc-2', 'alloc-3', OWN_FOLDER]);
    expect(await readdir(path.join(bench.folder, OWN_FOLDER))).to.deep.equal([]);
    expect(cgroupsWith(`-${process.pid}-`)).to.deep.equal([]);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).to.equal(mountsBefore);
    expect(await bench.start().catch((error: unknown) => error)).to.be.instanceOf(TaskStartError);
  });

  it('leaves nothing behind when the agent is killed', async () => {
    const agent = await startAgent(bench.folder);
    expect(processesWith('4720')).not.to.deep.equal([]);
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    const parent = path.join(bench.folder, OWN_FOLDER);
    const mark = `-${agent.pid}-`;
    await eventually(
      'the end of its processes, files and cgroups',
      async () =>
        ['4720', '4721', '4722', mark].flatMap(processesWith).length === 0 &&
        !(await readdir(parent)).some((name) => name.includes(mark)) &&
        cgroupsWith(mark).length === 0,
      LIMIT_MS,
    );
  });

  it('clears away what an agent left whose guardian was killed with it', async () => {
    const agent = await startAgent(bench.folder);
    const mark = `-${agent.pid}-`;
    const guardians = processesWith(mark).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('guardian'),
    );
    expect(guardians).to.have.length(1);
    process.kill(Number(guardians[0]), 'SIGKILL');
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    await eventually(
      'the end of its processes',
      () => ['4720', '4721', mark].flatMap(processesWith).length === 0,
      LIMIT_MS,
    );
    const parent = path.join(bench.folder, OWN_FOLDER);
    expect((await readdir(parent)).filter((name) => name.includes(mark))).to.have.length(1);
    await bench.driver.stop();
    const next = new SandboxDriver({ log: silentLogger, folders: [bench.folder] });
    await next.check();
    expect((await readdir(parent)).filter((name) => name.includes(mark))).to.deep.equal([]);
    expect(cgroupsWith(mark)).to.deep.equal([]);
    await next.stop();
  });
});

/** A process that runs a sandbox with an exec and a terminal. */
async function startAgent(folder: string): Promise<ChildProcess> {
  const script = path.join(import.meta.dirname, 'support', 'sandbox-agent.ts');
  const agent = spawn(process.execPath, ['--import', 'tsx', script, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(agent.stdout, 'data');
  return agent;
}
