import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { LINUX, needs } from '../support/needs.js';
import { sandboxAccounts } from '../../lib/dev-agent/sandbox/accounts.js';
import { identityMap } from '../../lib/dev-agent/sandbox/entry.js';
import { foldersOf, sandboxFstab } from '../../lib/dev-agent/sandbox/fstab.js';
import type { HostView } from '../../lib/dev-agent/sandbox/host-view.js';
import { findExecutable } from '../../lib/dev-agent/sandbox/lookup.js';
import { isWithin, parseMountInfo } from '../../lib/dev-agent/sandbox/mount-table.js';
import { withEnvironment } from '../../lib/dev-agent/sandbox/script.js';
import { makeStateFolder } from '../../lib/dev-agent/sandbox/state-folder.js';

describe('the accounts of a sandbox', () => {
  const passwd = 'root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\n+nis::::::\n';
  const group = 'root:x:0:\nann:x:1000:\nteam:x:1001:ann\n';

  it('have a user with the first number that is free for users and groups alike', () => {
    const { user, files } = sandboxAccounts({ passwd, group });
    expect(user).to.deep.equal({ name: 'user', uid: 1002, gid: 1002, home: '/home/user' });
    expect(files.passwd).to.equal(
      'root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\nuser:x:1002:1002::/home/user:/bin/bash\n',
    );
    expect(files.group).to.equal('root:x:0:\nann:x:1000:\nteam:x:1001:ann\nuser:x:1002:\n');
  });

  it('take the name from a user of the host who has it, and no password from anybody', () => {
    const { user, files } = sandboxAccounts({
      passwd: 'user:x:7:7:U:/home/u:/bin/zsh\n',
      group: 'user:x:7:\n',
    });
    expect(user.uid).to.equal(1000);
    expect(files.passwd).to.equal('user:x:1000:1000::/home/user:/bin/bash\n');
    expect(files.shadow).to.equal('user:*:19000:0:99999:7:::\n');
    expect(files.gshadow).to.equal('user:*::\n');
  });
});

describe('the mount table', () => {
  it('is read with optional fields, escapes and the options of the file system', () => {
    const text =
      '36 35 98:0 /mnt1 /mnt/two\\040words rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n' +
      '37 35 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n';
    expect(parseMountInfo(text)).to.deep.equal([
      { mountPoint: '/mnt/two words', type: 'ext3', superOptions: ['rw', 'errors=continue'] },
      { mountPoint: '/sys/fs/cgroup/memory', type: 'cgroup', superOptions: ['rw', 'memory'] },
    ]);
  });

  it('tells a folder from one whose name begins alike', () => {
    expect(isWithin('/usr/local', '/usr')).to.equal(true);
    expect(isWithin('/usr', '/usr')).to.equal(true);
    expect(isWithin('/usrlocal', '/usr')).to.equal(false);
    expect(isWithin('/usr', '/')).to.equal(true);
  });
});

describe('the mounts of a sandbox', () => {
  const view: HostView = {
    folders: ['/usr', '/etc', '/usr/local'],
    links: ['/bin'],
    readOnly: ['/proc/sys'],
    empty: ['/proc/kcore'],
    facts: [],
  };
  const options = {
    view,
    layer: { folderFor: (folder: string) => `/layer${folder}` },
    base: '/state/1',
    allocFolder: '/with blank/alloc',
    localFolder: '/local\\folder',
  };

  it('cover what is mounted in a folder after the folder, each with places of its own', () => {
    const rows = sandboxFstab({ ...options, entry: { kind: 'root' } }).split('\n');
    const overlays = rows.filter((row) => row.startsWith('overlay'));
    expect(overlays.map((row) => row.split(' ')[1])).to.deep.equal(
      ['/usr', '/etc', '/usr/local'].map((name) => `/state/1/root${name}`),
    );
    expect(overlays[2]).to.include(
      'lowerdir=/layer/usr/local:/usr/local,upperdir=/state/1/up/2,workdir=/state/1/wk/2',
    );
    expect(overlays[0]).not.to.include('userxattr');
    expect(foldersOf(view))
      .to.include.members(['up/2', 'wk/2', 'root/usr', 'root/workspace'])
      .and.not.to.include('root/usr/local');
  });

  it('escape blanks and backslashes, and take no devices or privileges from the host', () => {
    const rows = sandboxFstab({ ...options, entry: { kind: 'root' } })
      .trim()
      .split('\n');
    expect(rows).to.include('/with\\040blank/alloc /state/1/root/alloc none bind,nosuid,nodev 0 0');
    expect(rows).to.include('/local\\134folder /state/1/root/local none bind,nosuid,nodev 0 0');
    for (const row of rows) {
      expect(row).to.include('nosuid');
      expect(
        row.includes('nodev') || / \/state\/1\/root\/(dev|dev\/pts|proc\/kcore) /.test(row),
        row,
      ).to.equal(true);
    }
  });

  it('bind the devices of the host where nodes cannot be made', () => {
    const rows = sandboxFstab({ ...options, entry: { kind: 'unprivileged' } });
    expect(rows)
      .to.include('/dev/null /state/1/root/dev/null none bind,nosuid,noexec 0 0\n')
      .and.to.include('userxattr');
  });
});

describe('looking up a command in a sandbox', () => {
  let root: string;
  const options = { searchPath: '/usr/local/bin:/usr/bin', folder: '/workspace' };

  before(() => {
    root = mkdtempSync(path.join(tmpdir(), 'serai-lookup-'));
    for (const folder of ['usr/bin', 'usr/local/bin', 'etc/alternatives', 'workspace/sub']) {
      mkdirSync(path.join(root, folder), { recursive: true });
    }
    writeFileSync(path.join(root, 'usr/bin/tool'), '');
    chmodSync(path.join(root, 'usr/bin/tool'), 0o755);
    writeFileSync(path.join(root, 'usr/local/bin/tool'), 'not executable');
    symlinkSync('/etc/alternatives/alias', path.join(root, 'usr/bin/alias'));
    symlinkSync('../../usr/bin/tool', path.join(root, 'etc/alternatives/alias'));
    symlinkSync('/usr/bin/loop', path.join(root, 'usr/bin/loop'));
    symlinkSync('/usr/bin/tool', path.join(root, 'workspace/mine'));
    symlinkSync('usr/bin', path.join(root, 'bin'));
  });
  after(() => rmSync(root, { recursive: true }));

  it('takes absolute links as the sandbox means them', () => {
    expect(findExecutable(root, 'alias', options)).to.equal('/usr/bin/alias');
    expect(findExecutable(root, './mine', options)).to.equal('./mine');
    expect(findExecutable(root, '/bin/alias', options)).to.equal('/bin/alias');
    expect(findExecutable(root, '../../../../bin/tool', options)).to.equal('../../../../bin/tool');
  });

  it('passes over what cannot be run', () => {
    expect(findExecutable(root, 'tool', options)).to.equal('/usr/bin/tool');
    const failure = (command: string): unknown => {
      try {
        return findExecutable(root, command, options);
      } catch (error) {
        return error instanceof Error ? error.message : error;
      }
    };
    expect(failure('loop')).to.equal('exec: "loop": executable file not found in $PATH');
    expect(failure('')).to.equal('exec: "": executable file not found in $PATH');
    expect(failure('/usr/local/bin/tool')).to.equal('fork/exec /usr/local/bin/tool: permission denied');
    expect(failure('/usr/bin')).to.equal('fork/exec /usr/bin: permission denied');
    expect(failure('/usr/bin/tool/x')).to.equal('fork/exec /usr/bin/tool/x: no such file or directory');
  });
});

describe('the words that enter a sandbox', () => {
  it('keep a command with an equals sign from being taken for a variable', () => {
    expect(withEnvironment(['a=b', 'c'], { X: '1' })).to.deep.equal([
      'env',
      '-i',
      '--',
      'X=1',
      'sh',
      '-c',
      'exec "$0" "$@"',
      'a=b',
      'c',
    ]);
    expect(withEnvironment(['a', 'b=c'], {})).to.deep.equal(['env', '-i', '--', 'a', 'b=c']);
  });

  it('map the ids of a namespace to themselves, part by part', () => {
    expect(identityMap('         0          0 4294967295\n')).to.equal('0 0 4294967295\n');
    expect(identityMap('0 1000 1\n1 100000 65536\n')).to.equal('0 0 1\n1 1 65536\n');
  });
});

describe('the folder of an agent', () => {
  let place: string;
  beforeEach(() => {
    place = mkdtempSync(path.join(tmpdir(), 'serai-state-'));
  });
  afterEach(() => rmSync(place, { recursive: true }));

  it('is refused where the parent is open to others', async function () {
    needs(this, LINUX);
    mkdirSync(path.join(place, `serai-sandbox-${process.getuid?.() ?? 0}`), { mode: 0o755 });
    const error = await makeStateFolder([place]).catch((reason: unknown) => reason);
    expect(error)
      .to.be.instanceOf(Error)
      .with.property('message')
      .that.matches(/is not a folder of this user alone/);
  });

  it('passes over places that overlayfs cannot use, and says so when none is left', async function () {
    needs(this, LINUX);
    expect((await makeStateFolder(['/no/such', `${place}/with,comma`, place])).parent).to.include(place);
    const error = await makeStateFolder(['/no/such']).catch((reason: unknown) => reason);
    expect(error)
      .to.be.instanceOf(Error)
      .with.property('message')
      .that.matches(/set TMPDIR/);
  });

  it('tells dead agents from living ones and from those of other namespaces', async function () {
    needs(this, LINUX);
    const first = await makeStateFolder([place]);
    const [namespace = '', pid = ''] = first.name.split('-');
    const dead = [`${namespace}-${pid}-1-1`, `${namespace}-4194999-5-1`];
    for (const name of [...dead, `1-4194999-5-1`, 'something-else']) mkdirSync(path.join(first.parent, name));
    const second = await makeStateFolder([place]);
    expect([...second.leftovers].sort()).to.deep.equal(dead.sort());
  });
});
