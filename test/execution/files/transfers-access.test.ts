import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { hasCode, messageOf } from '../../../lib/base/errors.js';
import { needs, ROOT } from '../../support/needs.js';

import { eachWay, failure, folder, source } from './local-files.js';

/** What a user may reach, and where nothing may be written. */
describe('file transfers in a real shell: what is out of reach', () => {
  eachWay((local) => {
    it('tells a path that is missing, no file, or closed to the user [A3-83]', async () => {
      const { at, list, read } = local();
      mkdirSync(at('folder'));
      for (const name of ['nope', 'folder', 'folder/nope/x', '/dev/null']) {
        expect(hasCode(await failure(read(name)), 'FILE_UNREADABLE'), name).to.equal(true);
      }
      const missing = await failure(list('nope/'));
      expect(hasCode(missing, 'FILE_UNREADABLE')).to.equal(true);
      expect(messageOf(missing)).to.include('file not found or insufficient permissions');
    });

    it('names each path that cannot be written, and writes the others', async () => {
      const { at, update } = local();
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
      const { at, update } = local();
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
      const { update } = local();
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
      const { at, update } = local();
      needs(this, ROOT);
      await update([folder('d/'), source('d/t.py', 'x')]);
      const { mode, uid } = statSync(at('d'));
      expect([mode & 0o7777, uid]).to.deep.equal([0o1777, 0]);
      expect(statSync(at('d/t.py')).uid).to.equal(0);
    });

    it('reads as the user who asks', async function () {
      const { at, read } = local();
      needs(this, ROOT);
      writeFileSync(at('secret'), 's', { mode: 0o600 });
      expect((await read('secret', true)).data.toString()).to.equal('s');
      expect(hasCode(await failure(read('secret', false)), 'FILE_UNREADABLE')).to.equal(true);
    });

    it('changes nothing where a path is none', async () => {
      const { workspace, at, update } = local();
      writeFileSync(at('kept'), '');
      for (const bad of ['', '..', 'a/..', 'nul\0']) {
        expect(hasCode(await failure(update([source(bad, '')], ['./*'])), 'INVALID_REQUEST'), bad).to.equal(
          true,
        );
      }
      for (const bad of ['/', '..', 'a/../', '//']) {
        const removal = update([], ['./*', bad]);
        expect(hasCode(await failure(removal), 'INVALID_REQUEST'), bad).to.equal(true);
      }
      expect(readdirSync(workspace)).to.deep.equal(['kept']);
    });
  });
});
