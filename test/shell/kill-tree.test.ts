import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { KillRequest } from '../../lib/shell/kill-tree.js';
import { killScript, parseKillResult } from '../../lib/shell/kill-tree.js';
import { quote } from '../../lib/shell/quote.js';
import { feed, scriptReader } from '../../lib/shell/script.js';
import { runShell, SHELLS } from '../support/shells.js';
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

/** Whether this machine lets us make a process namespace. */
const canUnshare =
  runShell(['unshare', '--pid', '--fork', '--mount-proc', 'sh'], 'echo yes').trim() === 'yes';

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

  for (const shell of SHELLS) {
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
  }

  (canUnshare ? it : it.skip)("ends nobody's processes where the processes are the task's own", () => {
    const allocationId = randomUUID();
    const survivor = randomUUID();
    const script = killScript(
      request({ allocationId, others: [{ id: survivor, root: undefined }], sweep: true }),
    );
    const count = killScript(request({ allocationId, others: [{ id: survivor, root: undefined }] }));
    // Process 1, one process of ours and one of an execution that ended stay; the two others belong to nobody.
    const inside = `
      setsid sleep 71 &
      SERAI_EXECUTION=${survivor} setsid env -u NOMAD_ALLOC_ID sleep 72 &
      setsid env -i sleep 73 &
      setsid setpriv --reuid 65534 --clear-groups sleep 74 &
      while [ "$(cat /proc/[0-9]*/comm | grep -c sleep)" != 4 ]; do :; done
      (eval ${quote(count)})
      (eval ${quote(script)})
      for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep ^sleep; done`;
    const printed = runShell(
      [
        'unshare',
        '--pid',
        '--fork',
        '--mount-proc',
        '--kill-child',
        'env',
        `NOMAD_ALLOC_ID=${allocationId}`,
        'sh',
      ],
      inside,
    );
    expect(printed.split('\n').map((line) => line.trim())).to.deep.equal([
      'K 0 2',
      'K 0 0',
      'sleep 71',
      'sleep 72',
      '',
    ]);
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
