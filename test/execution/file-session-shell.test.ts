import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import type { CommandSession } from '../../lib/execution/session.js';

import { listCall, readCall } from '../../lib/shell/read-files.js';
import { LocalExecs } from '../support/local-exec.js';
import { needs, ROOT } from '../support/needs.js';
import { eachShell } from '../support/shells.js';
import { eventually } from '../support/waiting.js';
import { call, fileRequest, NOBODY, openLocalSession, printed } from './support/file-sessions.js';

describe('a file session in a real shell', () => {
  eachShell((shell) => {
    describe(`sh being ${shell[0]}`, () => {
      let root: string;
      let workspace: string;
      let session: CommandSession;
      let execs: LocalExecs;

      beforeEach(async () => {
        root = mkdtempSync(path.join(tmpdir(), 'session-'));
        chmodSync(root, 0o755);
        workspace = path.join(root, 'workspace');
        mkdirSync(workspace);
        execs = new LocalExecs({ shell, cwd: workspace });
        session = await openLocalSession(execs, path.join(root, 'stage'));
      });

      afterEach(async () => {
        await session.close();
        rmSync(root, { recursive: true });
      });

      it('gives each of many calls exactly its input, and tells exactly what it printed', async () => {
        const part = fc.oneof(
          fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
          fc.constantFrom(
            ...['\n', '123 4\n', '#\n.\n', "'", '\x1d0', 'over 1\n'].map((text) => Buffer.from(text)),
          ),
          fc.nat(300_000).map((length) => Buffer.alloc(length, 'long')),
        );
        const inputs = fc.array(part, { maxLength: 5 }).map((parts) => Buffer.concat(parts));
        await fc.assert(
          fc.asyncProperty(inputs, fc.nat(255), async (input, code) => {
            const { end, output } = await call(session, { command: `cat; exit ${code}`, input });
            expect(end).to.deep.equal({ kind: 'exited', exitCode: code });
            expect(output.equals(input)).to.equal(true);
            expect(await session.settle()).to.equal('clean');
          }),
          { numRuns: 25 },
        );
      });

      it('never takes input that a call left for a request', async () => {
        const mark = path.join(root, 'mark');
        const request = (token: string): string => {
          const text = `serai_in='0'\nserai_tool='none'\nserai_c='touch ${mark}'\n`;
          return [`${token} ${text.length}\n${text}`, `${token} 3 ${text.length}\n${text}`].join('');
        };
        for (const filler of ['', `${'x'.repeat(200_000)}\n`]) {
          const kept = await openLocalSession(execs, path.join(root, 'stage'));
          const text = (token: string): Buffer => Buffer.from(filler + request(token).repeat(3));
          const length = text('0'.repeat(39)).length;
          const { end } = await call(kept, {
            command: 'head -c 1 >/dev/null; exit 4',
            input: Buffer.alloc(length),
            // Even one that knows the token.
            started: (token) => void kept.write(text(token.padStart(39, '0'))),
          });
          expect(end).to.deep.equal({ kind: 'exited', exitCode: 4 });
          const aftermath = await kept.settle();
          if (aftermath === 'clean') expect(filler).to.equal('');
          await kept.close();
          expect(existsSync(mark)).to.equal(false);
        }
      });

      it('does nothing of a request that was cut off, least of all what it did before', async () => {
        const [exec] = execs.opened;
        await printed(session, { command: 'echo once >>calls' });
        const { token } = fileRequest({ command: '' });
        const part = "serai_in='0'\nserai_tool='none'\n";
        await exec?.write(Buffer.from(`${token} 500\n${part}`));
        exec?.closeStdin();
        await exec?.end;
        expect(readFileSync(path.join(workspace, 'calls'), 'utf8')).to.equal('once\n');
      });

      it('lets no process of a user hold a descriptor of the exec', async function () {
        needs(this, ROOT);
        const pipes = (text: string): string[] => text.match(/(?:pipe|socket):\[\d+\]/g) ?? [];
        const ours = pipes(await printed(session, { command: 'ls -l /proc/$$/fd' }));
        expect(ours.length).to.be.greaterThan(1);
        // What the tests themselves were started with is no descriptor of an exec.
        const inherited = readdirSync('/proc/self/fd').map((name) => linkOf(`/proc/self/fd/${name}`));
        const look = 'serai_become /bin/sh -c "ls -l /proc/self/fd; cat >/dev/null"';
        for (const input of [undefined, Buffer.from('x')]) {
          const theirs = pipes(
            await printed(session, { command: look, user: NOBODY, ...(input && { input }) }),
          );
          expect(theirs).not.to.deep.equal([]);
          for (const pipe of theirs)
            expect(ours.filter((other) => !inherited.includes(other))).not.to.include(pipe);
        }
      });

      it('looks at a folder and opens a file as the user alone', async function () {
        needs(this, ROOT);
        mkdirSync(path.join(workspace, 'closed', 'open'), { recursive: true });
        writeFileSync(path.join(workspace, 'closed', 'open', 'f'), 'secret');
        chmodSync(path.join(workspace, 'closed'), 0o700);
        mkdirSync(path.join(workspace, 'names'), { mode: 0o744 });
        writeFileSync(path.join(workspace, 'names', 'g'), '');
        symlinkSync('closed/open', path.join(workspace, 'l'));
        const as = (command: string): Promise<string> =>
          call(session, { command, user: NOBODY }).then(async ({ output }) => {
            expect(await session.settle()).to.equal('clean');
            return output.toString().replaceAll('\0', ' ');
          });
        for (const place of ['closed/open', 'closed/open/f', 'l/'])
          expect(await as(listCall(place, true))).to.equal('');
        expect(await as(listCall('names', true))).not.to.include('/g');
        expect(await as(listCall('.', true)))
          .to.include('closed')
          .and.not.to.include('open/');
        for (const place of ['closed/open/f', 'l/f']) expect(await as(readCall(place))).to.equal('');
      });

      it('lists the same without GNU find', async () => {
        for (const name of ['a', ' b\n', "-c'", 'é']) writeFileSync(path.join(workspace, name), name);
        mkdirSync(path.join(workspace, 'd', 'e'), { recursive: true });
        symlinkSync('nowhere', path.join(workspace, 'd', 'l'));
        for (const place of ['.', 'd', 'd/', './d/l', "-c'"]) {
          for (const recursive of [true, false]) {
            const command = listCall(place, recursive);
            const gnu = await printed(session, { command });
            const plain = await printed(session, { command: `serai_gnu=; ${command}` });
            expect(withoutFractions(plain)).to.deep.equal(withoutFractions(gnu));
          }
        }
      });

      it('works in the folder that has the name now, and in no other that a link shows', async () => {
        const list = 'ls';
        writeFileSync(path.join(workspace, 'old'), '');
        expect(await printed(session, { command: list })).to.equal('old\n');
        renameSync(workspace, path.join(root, 'away'));
        mkdirSync(workspace);
        writeFileSync(path.join(workspace, 'new'), '');
        expect(await printed(session, { command: list })).to.equal('new\n');
        rmSync(workspace, { recursive: true });
        symlinkSync('/etc', workspace);
        expect((await call(session, { command: list })).end).to.deep.equal({
          kind: 'refused',
          refusal: 'directory',
        });
        expect(await session.settle()).to.equal('clean');
        rmSync(workspace);
        mkdirSync(workspace);
        expect(await printed(session, { command: list })).to.equal('');
      });

      it('tells of processes that a call left, not of those of others', async () => {
        // It is asked again once they are gone.
        const left = async (command: string): Promise<string> => {
          const { end, output } = await call(session, { id: 'this-one', command });
          expect(end.kind).to.equal('exited');
          const aftermath = await session.settle();
          for (const pid of output.toString().trim().split('\n').filter(Boolean))
            process.kill(Number(pid), 'SIGKILL');
          if (aftermath === 'suspect') {
            await eventually('the session to be clean', async () => (await session.settle()) === 'clean');
          }
          return aftermath;
        };
        const background =
          '>/dev/null 2>&1 </dev/null & echo $!; until grep -q ^sleep /proc/$!/cmdline; do :; done';
        expect(await left(`sleep 60 ${background}`)).to.equal('suspect');
        expect(await left(`setsid sleep 61 ${background}`)).to.equal('suspect');
        const other = `SERAI_EXECUTION=another setsid sleep 62 ${background}`;
        expect(await left(other)).to.equal('clean');
        expect(await left('true')).to.equal('clean');
      });

      it('clears its staging folder away, whatever a call made of it', async () => {
        await printed(session, { command: 'mkdir "$serai_d"; echo x >"$serai_d/f"' });
        expect(existsSync(path.join(root, 'stage'))).to.equal(false);
        await printed(session, { command: 'ln -s "$serai_root" "$serai_d"; touch kept' });
        expect(existsSync(path.join(root, 'stage'))).to.equal(false);
        expect(await printed(session, { command: 'ls' })).to.equal('kept\n');
      });
    });
  });
});

function linkOf(name: string): string {
  try {
    return readlinkSync(name);
  } catch {
    return ''; // closed meanwhile
  }
}

/** GNU find gives fractions of a second. */
function withoutFractions(listing: string): string[] {
  return listing
    .split('\0')
    .map((field) => field.replace(/^(\d+)\.\d+$/, '$1'))
    .sort();
}
