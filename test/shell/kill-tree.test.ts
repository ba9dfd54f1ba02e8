import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { KillRequest } from '../../lib/shell/kill-tree.js';
import { killScript, parseKillResult } from '../../lib/shell/kill-tree.js';
import { feed, scriptReader } from '../../lib/shell/script.js';
import { namespaces, needs } from '../support/needs.js';
import { eachShell, runShell } from '../support/shells.js';
import { eventually } from '../support/waiting.js';

/** Living processes with these arguments. */
function alive(command: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const state = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
        const cmdline = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
        return state !== 'Z' && cmdline === `${command} `;
      } catch {
        return false; // ended meanwhile
      }
    })
    .map(Number);
}

function childOf(pid: number | undefined): number | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return children === '' ? undefined : Number(children.split(' ')[0]);
}

function request(overrides: Partial<KillRequest>): KillRequest {
  return { allocationId: randomUUID(), target: undefined, others: [], sweep: false, ...overrides };
}

describe('killScript', () => {
  const children: ChildProcess[] = [];
  let mark = 0;

  /** Starts a script of its own session, in which `$M` is a number that marks its processes. */
  function start(script: string, env: Record<string, string> = {}): ChildProcess {
    const child = spawn('sh', ['-c', script], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { PATH: process.env['PATH'], M: String(mark), ...env },
    });
    children.push(child);
    return child;
  }

  function run(shell: readonly string[], options: KillRequest): ReturnType<typeof parseKillResult> {
    return parseKillResult(runShell(shell, killScript(options)));
  }

  beforeEach(() => {
    mark = 900_000_000 + Math.floor(Math.random() * 99_999_999);
  });

  afterEach(() => {
    for (const pid of alive(`sleep ${mark}`)) process.kill(pid, 'SIGKILL');
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  eachShell((shell) => {
    describe(`in ${shell[0]}`, () => {
      it('ends all that carries the id or descends from what does [A2-47] [A2-48]', async () => {
        const id = randomUUID();
        start(
          `trap '' INT QUIT TERM HUP
           setsid sleep $M & sleep $M & (sleep $M &)
           (env -i sleep $M; :) & sh -c 'while :; do sleep $M; done' & sleep $M`,
          { SERAI_EXECUTION: id },
        );
        await eventually('the tree', () => alive(`sleep ${mark}`).length === 6);
        expect(run(shell, request({ target: { id, root: undefined } }))).to.deep.equal({
          left: 0,
          nobody: 0,
        });
        expect(alive(`sleep ${mark}`)).to.deep.equal([]);
      });

      it('ends what a known shell started, but not that shell', async () => {
        const child = start('sleep $M & env -i sleep $M; read x');
        await eventually('the tree', () => alive(`sleep ${mark}`).length === 2);
        const root = { pid: child.pid ?? 0, session: child.pid ?? 0, terminal: 0 };
        const result = run(shell, request({ target: { id: randomUUID(), root } }));
        expect(result?.left).to.equal(0);
        expect(alive(`sleep ${mark}`)).to.deep.equal([]);
        expect(existsSync(`/proc/${child.pid}`)).to.equal(true);
      });

      it('leaves other executions, and on a machine that is not the task its own everything else', async () => {
        const other = randomUUID();
        start('sleep $M & sleep $M', { SERAI_EXECUTION: other });
        start('env -i sleep $M & wait');
        await eventually('the trees', () => alive(`sleep ${mark}`).length === 3);
        const target = { id: randomUUID(), root: undefined };
        const others = [{ id: other, root: undefined }];
        expect(run(shell, request({ target, others, sweep: true }))).to.deep.equal({ left: 0, nobody: 0 });
        expect(alive(`sleep ${mark}`)).to.have.length(3);
      });

      it('keeps up with processes that go on forking [A4-90]', async () => {
        const id = randomUUID();
        start('f() { sleep $M & g=$((g + 1)); [ $g -gt 60 ] || f; }; while :; do g=0; f; sleep 1; done', {
          SERAI_EXECUTION: id,
        });
        await eventually('the bomb', () => alive(`sleep ${mark}`).length > 50);
        expect(run(shell, request({ target: { id, root: undefined } }))?.left).to.equal(0);
        expect(alive(`sleep ${mark}`)).to.deep.equal([]);
      });
    });
  });

  it("ends nobody's processes where the processes are the task's own", async function () {
    needs(this, ...namespaces(['--pid', '--fork', '--mount-proc']));
    const allocationId = randomUUID();
    const survivor = randomUUID();
    const others = [{ id: survivor, root: undefined }];
    // Process 1 and its session, one process of ours and one of an execution that ended stay; two belong to nobody.
    const task = spawn(
      'unshare',
      ['--pid', '--fork', '--mount-proc', '--kill-child', 'setsid', 'sh', '-c', 'sleep 70 & read x'],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    );
    children.push(task);
    await eventually('the task', () => childOf(task.pid) !== undefined);
    const inside = ['nsenter', '--target', String(childOf(task.pid)), '--pid', '--mount', 'setsid', 'sh'];
    const list =
      'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null; echo; done | grep "^sleep 7"';
    const sleepers = (): string[] => runShell(inside, list).split('\n').filter(Boolean).sort();
    runShell(
      inside,
      `exec >/dev/null 2>&1
       NOMAD_ALLOC_ID=${allocationId} setsid -f sleep 71
       SERAI_EXECUTION=${survivor} setsid -f sleep 72
       setsid -f env -i sleep 73
       NOMAD_ALLOC_ID=${allocationId} setsid -f setpriv --reuid 65534 --clear-groups sleep 74`,
    );
    await eventually('all processes', () => sleepers().length === 5);
    const kill = (sweep: boolean): unknown => run(inside, request({ allocationId, others, sweep }));
    expect(kill(false)).to.deep.equal({ left: 0, nobody: 2 });
    expect(sleepers()).to.have.length(5);
    expect(kill(true)).to.deep.equal({ left: 0, nobody: 0 });
    expect(sleepers()).to.deep.equal(['sleep 70 ', 'sleep 71 ', 'sleep 72 ']);
  });

  it('is read over standard input like every script', () => {
    const text = feed(killScript(request({}))).toString();
    const [program = '', option = '', bootstrap = ''] = scriptReader();
    expect([program, option]).to.deep.equal(['sh', '-c']);
    expect(parseKillResult(runShell(['sh'], bootstrap, text))).to.deep.equal({ left: 0, nobody: 0 });
  });

  it('has no result where it did not come to its end', () => {
    expect(parseKillResult('')).to.equal(undefined);
    expect(parseKillResult('K 1')).to.equal(undefined);
  });
});
