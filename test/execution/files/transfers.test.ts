import { createHash } from 'node:crypto';
import {
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { hasCode } from '../../../lib/base/errors.js';

import { NEVER } from '../../support/executions.js';
import { eachWay, failure, source } from './local-files.js';

/** The scripts against real shells; the runner is a folder of this machine. */
describe('file transfers in a real shell', () => {
  eachWay((local) => {
    it('copies and reads the same bytes, empty files and missing newlines included [A3-72, A3-82]', async () => {
      const { at, update, read } = local();
      const all = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
      await update([source('b.bin', all), source('empty', ''), source('d/e/n', 'x')]);
      expect((await read('b.bin')).data.equals(all)).to.equal(true);
      expect(await read('empty')).to.deep.equal({ size: 0, data: Buffer.alloc(0) });
      expect((await read('d/e/n')).data.toString()).to.equal('x');
      expect(statSync(at('b.bin')).mode & 0o7777).to.equal(0o744);
      expect(statSync(at('d/e')).mode & 0o7777).to.equal(0o755);
    });

    it('takes any name that a file can have as a name, and nothing of it as shell [A4-85, B8]', async () => {
      const { workspace, update, list, read } = local();
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
      expect((await list('./')).map(({ name }) => name)).to.have.members(names.map((name) => `./${name}`));
      expect((await list('-rf')).map(({ name }) => name)).to.deep.equal(['-rf']);
      await update(
        [],
        names.map((name) => `./${name}`),
      );
      expect(readdirSync(workspace)).to.deep.equal([]);
    });

    it('round-trips random names and contents', async () => {
      const { at, update, list } = local();
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
      const { kept } = local();
      if (kept) expect([kept.opened, ...new Set(kept.aftermaths)]).to.deep.equal([1, 'clean']);
    });

    it('empties the workspace, dot files and names like options included [A3-77, B7]', async () => {
      const { workspace, at, update } = local();
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
      const { runner, files, at, list } = local();
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
      const { read } = local();
      const { size, data } = await read('/proc/self/status');
      expect(size).to.equal(undefined);
      expect(data.toString()).to.match(/^Name:/);
    });

    it('streams a large file both ways', async () => {
      const { runner, files } = local();
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
      const { runner, files, at } = local();
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
  });
});

async function* never(): AsyncIterable<Buffer> {
  yield Buffer.from('x');
  await new Promise(() => undefined);
}
