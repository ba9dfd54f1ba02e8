import { execFile } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { needs, program, ROOT } from '../support/needs.js';

const UID = 54_321;
const NAME = 'serai-test';
const PROJECT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/**
 * The driver run by an ordinary user. Root makes one for it, with a range of ids, in a copy of /etc that only the
 * test's own mount namespace shows, and shows the project and Node where that user can read them.
 */
describe('SandboxDriver without root', () => {
  let folder: string;

  before(function () {
    needs(this, ROOT); // to become another user; without root the other suites do it
    needs(this, program('newuidmap', 'uidmap'));
    folder = mkdtempSync(path.join(tmpdir(), 'serai-unprivileged-'));
    chmodSync(folder, 0o755);
    for (const name of ['project', 'home']) mkdirSync(path.join(folder, name));
    for (const name of ['node', 'plain']) writeFileSync(path.join(folder, name), '');
    chownSync(path.join(folder, 'home'), UID, UID);
    const etc = path.join(folder, 'etc');
    cpSync('/etc', etc, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => !/\/(gshadow|shadow)-?$/.test(file),
    });
    appendFileSync(path.join(etc, 'passwd'), `${NAME}:x:${UID}:${UID}::/nonexistent:/bin/sh\n`);
    for (const name of ['subuid', 'subgid']) writeFileSync(path.join(etc, name), `${NAME}:600100000:65536\n`);
  });
  after(() => {
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  /** Runs the script as the user, with these mounts made before, and resolves with what it told. */
  async function asUser(...mounts: string[]): Promise<Record<string, unknown>> {
    const script = `set -e
      ${mounts.join('\n')}
      mount --bind "$1" ${folder}/project
      mount --bind "$2" ${folder}/node
      cd ${folder}/project
      exec setpriv --reuid ${UID} --regid ${UID} --clear-groups --inh-caps=-all env -i PATH="$PATH" \\
        TMPDIR=${folder}/home HOME=${folder}/home ${folder}/node --import tsx \\
        test/dev-agent/support/sandbox-unprivileged.ts ${folder}/home`;
    const { stdout } = await run('unshare', ['--mount', 'sh', '-c', script, 'sh', PROJECT, process.execPath]);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  it('isolates in the same way', async function () {
    const told = await asUser(`mount --bind ${folder}/etc /etc`);
    const refused = String(told['refused']);
    needs(this, { isMet: !/user namespaces/.test(refused), missing: refused, isForbidden: true });
    expect(told).to.deep.equal({
      ids: '0\nuser\nrefused\nuser\n',
      writes: 'written\n',
      network: 'lo\n6\n',
      kernel: 'refused\n',
      interrupted: 130,
    });
    expect(existsSync('/etc/serai-was-here') || existsSync('/usr/serai-was-here')).to.equal(false);
    expect(readdirSync(path.join(folder, 'home', `serai-sandbox-${UID}`))).to.deep.equal([]);
  });

  it('says which piece is missing and how it is installed', async () => {
    const noRange = await asUser(`rm ${folder}/etc/subgid`, `mount --bind ${folder}/etc /etc`);
    expect(noRange['refused']).to.equal(
      'serai-test has no range of 65535 ids in /etc/subgid, without which only root can make sandboxes: ' +
        'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 serai-test',
    );
    const noTool = await asUser(
      `mount --bind ${folder}/etc /etc`,
      `mount --bind ${folder}/plain "$(command -v newuidmap)"`,
    );
    expect(noTool['refused']).to.equal(
      'newuidmap is missing, without which only root can make sandboxes: apt-get install uidmap',
    );
  });
});
