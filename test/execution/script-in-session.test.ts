import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import { systemRandomness } from '../../lib/base/ids.js';
import { newToken } from '../../lib/execution/command.js';
import { openFileSession } from '../../lib/execution/file-session.js';
import { runScriptIn } from '../../lib/execution/script-exec.js';
import type { CommandSession } from '../../lib/execution/session.js';
import type { KillRequest } from '../../lib/shell/kill-tree.js';
import { killScript, parseKillResult } from '../../lib/shell/kill-tree.js';
import { copyCall, stagedPath } from '../../lib/shell/copy-files.js';
import { listCall, readCall } from '../../lib/shell/read-files.js';
import type { UserChoice } from '../../lib/shell/request.js';
import { archive } from '../../lib/execution/files/archive.js';
import { TestRunner } from '../support/claimed-runner.js';
import { failureOf } from '../support/failures.js';
import { LocalExecs } from '../support/local-exec.js';
import { namespaces, needs, program } from '../support/needs.js';
import { runShell } from '../support/shells.js';
import { eventually } from '../support/waiting.js';
import type { Call } from './support/file-sessions.js';
import { printed } from './support/file-sessions.js';

const NEVER = new AbortController().signal;

function childOf(pid: number | undefined): number | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return children === '' ? undefined : Number(children.split(' ')[0]);
}

/** A file session in a task whose processes are its own, as in a container. */
describe('a file session in a task of its own', () => {
  let task: ChildProcess;
  let inside: string[];
  let runner: TestRunner;
  let session: CommandSession;

  before(function () {
    needs(this, program('setpriv', 'util-linux'), ...namespaces(['--pid', '--fork', '--mount-proc']));
  });

  beforeEach(async () => {
    task = spawn(
      'unshare',
      ['--pid', '--fork', '--mount-proc', '--kill-child', 'setsid', 'sh', '-c', 'sleep 70 & read x'],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    );
    await eventually('the task', () => childOf(task.pid) !== undefined);
    inside = ['nsenter', '--target', String(childOf(task.pid)), '--pid', '--mount', 'setsid', 'sh'];
    runner = new TestRunner();
    session = await openFileSession(
      { nomad: new LocalExecs({ shell: inside, cwd: '/tmp' }), clock: systemClock },
      { runner, folder: `/tmp/.serai-${randomUUID()}`, signal: NEVER },
    );
    expect(await session.settle()).to.equal('clean');
  });

  afterEach(async () => {
    await session.close();
    const ended = once(task, 'exit');
    task.kill('SIGKILL');
    await ended;
  });

  const sleepers = (): string[] =>
    runShell(
      inside,
      'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null; echo; done | grep "^sleep 7"',
    )
      .split('\n')
      .filter(Boolean)
      .sort();

  async function kill(request: Partial<KillRequest>): Promise<unknown> {
    const text = killScript({
      ...{ allocationId: runner.allocationId, target: undefined, others: [], sweep: false },
      ...request,
    });
    const result = await runScriptIn(session, newToken(systemRandomness), {
      text,
      parse: parseKillResult,
      signal: NEVER,
    });
    expect(await session.settle()).to.equal('clean');
    return result;
  }

  it('ends the processes of an execution and of nobody, and never itself', async () => {
    const [survivor, victim] = [randomUUID(), randomUUID()];
    const others = [{ id: survivor, root: undefined }];
    runShell(
      inside,
      `exec >/dev/null 2>&1
       NOMAD_ALLOC_ID=${runner.allocationId} setsid -f sleep 71
       SERAI_EXECUTION=${survivor} setsid -f sleep 72
       setsid -f env -i sleep 73
       SERAI_EXECUTION=${victim} setsid -f sleep 74`,
    );
    await eventually('all processes', () => sleepers().length === 5);
    const target = { id: victim, root: undefined };
    expect(await kill({ target, others })).to.deep.equal({ left: 0, nobody: 1 });
    expect(sleepers()).to.deep.equal(['sleep 70 ', 'sleep 71 ', 'sleep 72 ', 'sleep 73 ']);
    expect(await kill({ others, sweep: true })).to.deep.equal({ left: 0, nobody: 0 });
    expect(sleepers()).to.deep.equal(['sleep 70 ', 'sleep 71 ', 'sleep 72 ']);
    expect(await printed(session, { command: 'echo alive' })).to.equal('alive\n');
  });

  it('has no result of a script that did not come to its end, and can go on', async () => {
    const script = { text: 'echo K 1; exit 3', parse: parseKillResult, signal: NEVER };
    const failure = await failureOf(runScriptIn(session, newToken(systemRandomness), script));
    expect(failure.code).to.equal('EXECUTION_FAILED');
    expect(await session.settle()).to.equal('clean');
  });

  it('counts no process that is dead and that nobody reaps', async () => {
    const states = 'for p in /proc/[0-9]*/stat; do read -r l <$p && echo "${l##*) }"; done';
    await printed(session, { command: `set +f; (sh -c : &); until { ${states}; } | grep -q ^Z; do :; done` });
    expect(runShell(inside, states)).to.match(/^Z/m);
  });

  it('starts few processes for an operation', async () => {
    const last = async (): Promise<number> => {
      const text = await printed(session, { command: 'read -r x </proc/loadavg; echo "$x"' });
      return Number(text.trim().split(' ').at(-1));
    };
    /** How many more than for a call that does nothing. */
    const forks = async (call: Call): Promise<number> => {
      const counts: number[] = [];
      for (const measured of [{ command: ':' }, call]) {
        const before = await last();
        await printed(session, measured);
        counts.push((await last()) - before);
      }
      const [nothing = 0, something = 0] = counts;
      return something - nothing;
    };
    expect(await forks({ command: listCall('.', false) })).to.be.at.most(0);
    const user: UserChoice = {
      kind: 'known',
      user: { tool: 'setpriv', name: 'nobody', uid: '65534', gid: '65534', home: '/' },
    };
    // The shell that tells the end, and the one that passes the output on.
    expect(await forks({ command: listCall('.', false), user })).to.be.at.most(2);
    expect(await forks({ command: readCall('/etc/passwd'), user })).to.be.at.most(3);
    const [folder, file] = [`/tmp/copied-${randomUUID()}`, { name: 'f', alias: 'f', sizeBytes: 1 }];
    const steps = [{ kind: 'place', folder, files: [file, { ...file, name: 'g', alias: 'g' }] }] as const;
    const members = steps[0].files.map((file) => ({
      path: stagedPath(0, file),
      sizeBytes: 1,
      bytes: letter,
    }));
    const chunks: Buffer[] = [];
    for await (const chunk of archive(members)) chunks.push(chunk);
    const copy = { command: copyCall(steps), input: Buffer.concat(chunks) };
    await printed(session, copy);
    // Two to pass the input on, and mkdir, tar, mv and rm.
    expect(await forks(copy)).to.be.at.most(6);
    expect(await printed(session, { command: `cat ${folder}/f ${folder}/g; rm -r ${folder}` })).to.equal(
      'xx',
    );
  });
});

// eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
async function* letter(): AsyncIterable<Buffer> {
  yield Buffer.from('x');
}
