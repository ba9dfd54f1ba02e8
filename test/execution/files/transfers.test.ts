import { createHash, randomUUID } from 'node:crypto';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { systemClock } from '../../../lib/base/clock.js';
import { hasCode, messageOf } from '../../../lib/base/errors.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import { silentLogger } from '../../../lib/base/log.js';
import { FileTransfers } from '../../../lib/execution/files/transfers.js';
import { ColdSessions } from '../../../lib/execution/cold-sessions.js';
import { SessionFolders } from '../../../lib/execution/session-folders.js';
import { RunnerBooks } from '../../../lib/execution/runner-books.js';
import type { FileEntry } from '../../../lib/protocol/files.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { EXECUTION_CONFIG } from '../../support/executions.js';
import { LocalExecs } from '../../support/local-exec.js';
import { isRoot, needs, ROOT } from '../../support/needs.js';
import { KeptSession } from '../../support/kept-session.js';
import { eachShell } from '../../support/shells.js';

const NEVER = new AbortController().signal;

function source(
  name: string,
  content: string | Buffer,
): { path: string; sizeBytes: number; bytes: () => AsyncIterable<Buffer> } {
  const data = Buffer.from(content);
  return { path: name, sizeBytes: data.length, bytes: () => pieces(data) };
}

function folder(name: string): { path: string; sizeBytes: undefined; bytes: () => AsyncIterable<Buffer> } {
  return { path: name, sizeBytes: undefined, bytes: () => pieces(Buffer.alloc(0)) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
async function* pieces(data: Buffer): AsyncIterable<Buffer> {
  for (let at = 0; at < data.length; at += 65_536) yield data.subarray(at, at + 65_536);
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** The scripts against real shells; the runner is a folder of this machine. */
describe('file transfers in a real shell', () => {
  eachShell((shell) => {
    for (const temperature of ['cold', 'warm'] as const) {
      describe(`sh being ${shell[0]}, ${temperature}`, () => {
        let workspace: string;
        let files: FileTransfers;
        let runner: TestRunner;
        let ids: string[];
        let kept: KeptSession | undefined;

        beforeEach(async () => {
          workspace = mkdtempSync(path.join(tmpdir(), 'files-'));
          if (isRoot) chownSync(workspace, 65_534, 65_534);
          runner = new TestRunner();
          ids = [];
          const shared = {
            nomad: new LocalExecs({ shell, cwd: workspace }),
            clock: systemClock,
            log: silentLogger,
          };
          const randomness = { ...systemRandomness, uuid: () => (ids.push(randomUUID()), ids.at(-1) ?? '') };
          kept =
            temperature === 'warm'
              ? new KeptSession(shared, () => `/tmp/.serai-${randomness.uuid()}`)
              : undefined;
          files = new FileTransfers({
            ...shared,
            randomness,
            sessions:
              kept ?? new ColdSessions({ ...shared, folders: new SessionFolders('test', randomness) }),
            books: new RunnerBooks(shared),
            config: { execution: EXECUTION_CONFIG, runner: { user: 'nobody' } },
          });
          await files.start();
        });

        afterEach(async () => {
          await files.stop();
          await kept?.close();
          expect(runner.activities).to.equal(0);
          expect(runner.abandoned).to.deep.equal([]);
          const names = ids.flatMap((id) => [id, id.replaceAll('-', '')]);
          const left = readdirSync('/tmp').filter((name) => names.some((id) => name.endsWith(id)));
          expect(left).to.deep.equal([]);
          rmSync(workspace, { recursive: true });
        });

        const at = (...parts: string[]): string => path.join(workspace, ...parts);
        const update = (
          sources: readonly (ReturnType<typeof source> | ReturnType<typeof folder>)[],
          removals: readonly string[] = [],
        ): Promise<void> => files.update(runner, { removals, files: sources, requestSignal: NEVER });
        const list = async (name: string, recursive = true, privileged = true): Promise<FileEntry[]> => {
          await using listing = await files.list(runner, {
            path: name,
            recursive,
            privileged,
            requestSignal: NEVER,
          });
          const entries: FileEntry[] = [];
          for await (const batch of listing.batches) entries.push(...batch);
          return entries;
        };
        const read = async (
          name: string,
          privileged = true,
        ): Promise<{ size: number | undefined; data: Buffer }> => {
          await using content = await files.read(runner, { path: name, privileged, requestSignal: NEVER });
          const chunks: Buffer[] = [];
          for await (const chunk of content.bytes) chunks.push(chunk);
          return { size: content.sizeBytes, data: Buffer.concat(chunks) };
        };

        it('copies and reads the same bytes, empty files and missing newlines included [A3-72, A3-82]', async () => {
          const all = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
          await update([source('b.bin', all), source('empty', ''), source('d/e/n', 'x')]);
          expect((await read('b.bin')).data.equals(all)).to.equal(true);
          expect(await read('empty')).to.deep.equal({ size: 0, data: Buffer.alloc(0) });
          expect((await read('d/e/n')).data.toString()).to.equal('x');
          expect(statSync(at('b.bin')).mode & 0o7777).to.equal(0o744);
          expect(statSync(at('d/e')).mode & 0o7777).to.equal(0o755);
        });

        it('takes any name that a file can have as a name, and nothing of it as shell [A4-85, B8]', async () => {
          const names = [
            '$(touch pwned)`id`;a "b" \'c\'',
            'new\n.\nline',
            '-rf',
            '@0',
            'é😀',
            'tab\tx',
            '*',
            ' ',
            '\x01',
            'x'.repeat(255),
          ];
          await update(names.map((name) => source(`./${name}`, name)));
          for (const name of names) expect((await read(name)).data.toString(), name).to.equal(name);
          expect((await list('./')).map(({ name }) => name)).to.have.members(
            names.map((name) => `./${name}`),
          );
          expect((await list('-rf')).map(({ name }) => name)).to.deep.equal(['-rf']);
          await update(
            [],
            names.map((name) => `./${name}`),
          );
          expect(readdirSync(workspace)).to.deep.equal([]);
        });

        it('round-trips random names and contents', async () => {
          const name = fc
            .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
            .map((text) => text.replaceAll('/', '_').replaceAll('\0', '_'))
            .filter((text) => text !== '.' && text !== '..');
          await fc.assert(
            fc.asyncProperty(
              fc.dictionary(name, fc.uint8Array({ maxLength: 2000 }), { maxKeys: 8 }),
              async (contents) => {
                const wanted = Object.entries(contents);
                await update(
                  wanted.map(([key, bytes]) => source(`./${key}`, Buffer.from(bytes))),
                  ['./*'],
                );
                for (const [key, bytes] of wanted) {
                  expect(readFileSync(at(key)).equals(Buffer.from(bytes))).to.equal(true);
                }
                expect((await list('./')).map(({ name, size }) => [name, size])).to.have.deep.members(
                  wanted.map(([key, bytes]) => [`./${key}`, bytes.length]),
                );
              },
            ),
            { numRuns: 8 },
          );
          if (kept) expect([kept.opened, ...new Set(kept.aftermaths)]).to.deep.equal([1, 'clean']);
        });

        it('empties the workspace, dot files and names like options included [A3-77, B7]', async () => {
          for (const name of ['.hidden', '..odd', '-v', 'plain', '*']) writeFileSync(at(name), '');
          mkdirSync(at('.d'));
          writeFileSync(at('.d', 'x'), '');
          await update([], ['./*']);
          expect(readdirSync(workspace)).to.deep.equal([]);
          writeFileSync(at('old'), '');
          await update([source('new', 'n')], ['./']);
          expect(readdirSync(workspace)).to.deep.equal(['new']);
        });

        it('lists types, sizes, modes and links as they are [A3-74, B2, B3]', async () => {
          writeFileSync(at('big.txt'), '');
          truncateSync(at('big.txt'), 3_000_000_000);
          mkdirSync(at('sub'));
          writeFileSync(at('sub', 'f'), 'abc', { mode: 0o640 });
          symlinkSync('big.txt', at('l'));
          symlinkSync('sub', at('to-sub'));
          const entries = new Map((await list('./')).map((entry) => [entry.name, entry]));
          expect([...entries.keys()]).to.have.members(['./big.txt', './sub', './sub/f', './l', './to-sub']);
          expect(entries.get('./big.txt')).to.include({ entryType: '-', size: 3_000_000_000 });
          expect(entries.get('./sub')).to.include({ entryType: 'd' });
          expect(entries.get('./sub/f')).to.include({ permissions: 'rw-r-----', size: 3 });
          expect(entries.get('./l')).to.include({ entryType: 'l', linkTarget: 'big.txt' });
          const { mtimeMs } = statSync(at('sub', 'f'));
          expect(entries.get('./sub/f')?.modificationTime).to.equal(Math.floor(mtimeMs / 1000));
          expect((await list('.', false)).map(({ name }) => name)).to.have.members([
            './big.txt',
            './sub',
            './l',
            './to-sub',
          ]);
          expect((await list('to-sub')).map(({ name }) => name)).to.deep.equal(['to-sub']);
          expect((await list('to-sub/')).map(({ name }) => name)).to.deep.equal(['to-sub/f']);
          await using content = await files.read(runner, {
            path: 'l',
            privileged: true,
            requestSignal: NEVER,
          });
          expect(content.sizeBytes).to.equal(3_000_000_000);
        });

        it('reads files whose length is not known beforehand', async () => {
          const { size, data } = await read('/proc/self/status');
          expect(size).to.equal(undefined);
          expect(data.toString()).to.match(/^Name:/);
        });

        it('tells a path that is missing, no file, or closed to the user [A3-83]', async () => {
          mkdirSync(at('folder'));
          for (const name of ['nope', 'folder', 'folder/nope/x', '/dev/null']) {
            expect(hasCode(await failure(read(name)), 'FILE_UNREADABLE'), name).to.equal(true);
          }
          const missing = await failure(list('nope/'));
          expect(hasCode(missing, 'FILE_UNREADABLE')).to.equal(true);
          expect(messageOf(missing)).to.include('file not found or insufficient permissions');
        });

        it('names each path that cannot be written, and writes the others', async () => {
          mkdirSync(at('taken'));
          writeFileSync(at('file'), '');
          const error = await failure(
            update([source('ok', '1'), source('taken', '2'), source('file/x', '3'), source('ok2', '4')]),
          );
          expect(hasCode(error, 'FILES_NOT_WRITTEN')).to.equal(true);
          expect(messageOf(error).split('\n')).to.have.members([
            'tar: taken: Cannot open: Is a directory',
            'tar: file/x: Cannot open: Not a directory',
          ]);
          expect(readFileSync(at('ok'), 'utf8') + readFileSync(at('ok2'), 'utf8')).to.equal('14');
        });

        it('never writes or removes through a planted link [A3-78]', async () => {
          const outside = mkdtempSync(path.join(tmpdir(), 'outside-'));
          writeFileSync(path.join(outside, 'kept'), 'kept');
          symlinkSync(outside, at('d'));
          symlinkSync(path.join(outside, 'kept'), at('l'));
          const error = await failure(
            update([source('d/x', 'evil'), source('d/y/z', 'evil'), source('l', 'mine')], ['d/kept', 'd/*']),
          );
          expect(hasCode(error, 'FILES_NOT_WRITTEN')).to.equal(true);
          expect(messageOf(error)).to.include('tar: d/x: Cannot open: Too many levels of symbolic links');
          expect(readdirSync(outside)).to.deep.equal(['kept']);
          expect(readFileSync(path.join(outside, 'kept'), 'utf8')).to.equal('kept');
          expect(lstatSync(at('l')).isSymbolicLink()).to.equal(false);
          expect(readFileSync(at('l'), 'utf8')).to.equal('mine');
          await update([], ['d']);
          expect(existsSync(at('d'))).to.equal(false);
          rmSync(outside, { recursive: true });
        });

        it('follows links that only root can have made', async function () {
          needs(this, ROOT, {
            isMet: lstatSync('/var/run').isSymbolicLink(),
            missing: 'a link of root at /var/run',
            isForbidden: true,
          });
          await update([source('/var/run/serai-test', 'x')]);
          expect(readFileSync('/run/serai-test', 'utf8')).to.equal('x');
          await update([], ['/var/run/serai-test']);
          expect(existsSync('/run/serai-test')).to.equal(false);
        });

        it('gives folders the sticky bit, so that given files stay as they are [A3-76]', async function () {
          needs(this, ROOT);
          await update([folder('d/'), source('d/t.py', 'x')]);
          const { mode, uid } = statSync(at('d'));
          expect([mode & 0o7777, uid]).to.deep.equal([0o1777, 0]);
          expect(statSync(at('d/t.py')).uid).to.equal(0);
        });

        it('reads as the user who asks', async function () {
          needs(this, ROOT);
          writeFileSync(at('secret'), 's', { mode: 0o600 });
          expect((await read('secret', true)).data.toString()).to.equal('s');
          expect(hasCode(await failure(read('secret', false)), 'FILE_UNREADABLE')).to.equal(true);
        });

        it('streams a large file both ways', async () => {
          const size = 40_000_000;
          const block = Buffer.alloc(1_000_000, 'm');
          async function* bytes(): AsyncIterable<Buffer> {
            for (let sent = 0; sent < size; sent += block.length) yield await Promise.resolve(block);
          }
          await files.update(runner, {
            removals: [],
            files: [{ path: 'm', sizeBytes: size, bytes }],
            requestSignal: NEVER,
          });
          const hash = createHash('sha256');
          await using content = await files.read(runner, {
            path: 'm',
            privileged: true,
            requestSignal: NEVER,
          });
          for await (const chunk of content.bytes) hash.update(chunk);
          const wanted = createHash('sha256').update(Buffer.alloc(size, 'm')).digest('hex');
          expect(hash.digest('hex')).to.equal(wanted);
        });

        it('leaves nothing of a transfer whose client leaves, or whose runner goes', async () => {
          writeFileSync(at('big'), '');
          truncateSync(at('big'), 100_000_000);
          const leaving = new AbortController();
          const content = await files.read(runner, {
            path: 'big',
            privileged: true,
            requestSignal: leaving.signal,
          });
          await content.bytes[Symbol.asyncIterator]().next();
          leaving.abort();
          await content[Symbol.asyncDispose]();
          const endless = files.update(runner, {
            removals: [],
            files: [{ path: 'e', sizeBytes: 1e9, bytes: never }],
            requestSignal: NEVER,
          });
          runner.leave('returned');
          expect(hasCode(await failure(endless), 'RUNNER_GONE')).to.equal(true);
        });

        it('changes nothing where a path is none', async () => {
          writeFileSync(at('kept'), '');
          for (const bad of ['', '..', 'a/..', 'nul\0']) {
            expect(
              hasCode(await failure(update([source(bad, '')], ['./*'])), 'INVALID_REQUEST'),
              bad,
            ).to.equal(true);
          }
          for (const bad of ['/', '..', 'a/../', '//']) {
            const removal = update([], ['./*', bad]);
            expect(hasCode(await failure(removal), 'INVALID_REQUEST'), bad).to.equal(true);
          }
          expect(readdirSync(workspace)).to.deep.equal(['kept']);
        });
      });
    }
  });
});

async function* never(): AsyncIterable<Buffer> {
  yield Buffer.from('x');
  await new Promise(() => undefined);
}
