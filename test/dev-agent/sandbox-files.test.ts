import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { isRoot, needs, ROOT } from '../support/needs.js';
import type { TaskHandle } from '../../lib/dev-agent/driver.js';
import { SandboxBench, sh } from './support/sandbox.js';

describe('SandboxDriver: files', () => {
  let bench: SandboxBench;
  let task: TaskHandle;
  let other: TaskHandle;

  before(async function () {
    bench = await SandboxBench.open(this);
    task = await bench.start();
    other = await bench.start();
  });
  after(() => bench?.close());

  it('keeps what is written anywhere from the host and from other sandboxes', async () => {
    const places = [
      '/etc',
      '/usr',
      '/opt',
      '/var',
      '/var/tmp',
      '/tmp',
      '/dev/shm',
      '/home/user',
      '/srv',
      '/',
    ];
    if (isRoot) places.push('/usr/bin', '/var/lib');
    const files = places.map((folder) => path.join(folder, 'serai-was-here'));
    const written = await sh(task, files.map((file) => `echo mine > ${file}`).join(' && '));
    expect(written).to.deep.include({ exitCode: 0, stderr: '' });
    for (const file of files) expect(existsSync(file), file).to.equal(false);
    const seen = await sh(other, `ls ${files.join(' ')} 2>/dev/null`);
    expect(seen.stdout).to.equal('');
  });

  it('keeps what is changed or removed from the host', async function () {
    needs(this, ROOT); // files of the host's root are nobody's then, and cannot be changed at all
    const before = readFileSync('/etc/passwd', 'utf8');
    const changed = await sh(
      task,
      'echo x >> /etc/passwd; rm /etc/hostname /usr/bin/env && rm -r /usr/share/doc/bash; chmod 600 /dev/null; echo $?',
    );
    expect(changed.stdout).to.equal('0\n');
    expect(readFileSync('/etc/passwd', 'utf8')).to.equal(before);
    expect(existsSync('/usr/bin/env')).to.equal(true);
    expect((await sh(other, 'stat -c %a /dev/null; ls /usr/bin/env')).stdout).to.equal('666\n/usr/bin/env\n');
  });

  it('shows nothing of the host but its standard folders', async () => {
    const { stdout } = await sh(other, 'ls -A /');
    const shown = stdout.trim().split('\n');
    expect(shown).to.include.members([
      'usr',
      'etc',
      'tmp',
      'workspace',
      'alloc',
      'local',
      'secrets',
      'proc',
      'dev',
    ]);
    for (const name of await readdir('/')) {
      if (/^(lost\+found|work|\.dockerenv|snap)$/.test(name)) expect(shown).not.to.include(name);
    }
    const hidden = await sh(
      other,
      'ls -A /root /home/user /run /mnt /media /srv /boot /tmp /var/tmp /workspace; ls /home',
    );
    expect(hidden.stdout.replace(/^\/.*:$/gm, '').trim()).to.equal('user');
  });

  it('hides the package, the state of the agent and what only root may read on the host', async () => {
    const source = path.resolve(import.meta.dirname, '../..');
    const { stdout } = await sh(
      other,
      `ls -d ${source} ${bench.folder} /etc/ssh/ssh_host_* 2>/dev/null; find /etc -type s; cut -d: -f2 /etc/shadow | sort -u`,
    );
    expect(stdout).to.equal('*\n');
  });

  it('closes what could change the host through /proc', async () => {
    const attempts = [
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
      '/proc/irq/default_smp_affinity',
    ];
    for (const file of attempts.filter((name) => existsSync(name))) {
      const { exitCode } = await sh(other, `echo x > ${file}`);
      const kept = file === '/proc/sysrq-trigger' ? exitCode >= 0 : exitCode !== 0;
      expect(kept, file).to.equal(true);
    }
    const { stdout } = await sh(
      other,
      'umount /proc/sys 2>&1; mount -o remount,rw /proc/sys 2>&1; mknod /tmp/disk b 8 0 2>&1; ls /tmp',
    );
    expect(stdout).not.to.match(/disk$/m);
    expect((await sh(other, 'echo x > /proc/sys/kernel/hostname')).exitCode).not.to.equal(0);
  });

  it('keeps /alloc and /local over restarts and nothing else', async () => {
    const allocFolder = path.join(bench.folder, 'kept');
    await mkdir(allocFolder);
    await writeFile(path.join(allocFolder, 'given'), 'by the agent');
    const first = await bench.start({ allocFolder });
    await sh(
      first,
      'cp /alloc/given /alloc/copy; echo l > /local/l; echo w > /workspace/w; echo t > /tmp/t; echo e > /etc/e',
    );
    await first.kill();
    const second = await bench.start({ allocFolder });
    const { stdout } = await sh(
      second,
      'cat /alloc/copy; cat /local/l; ls /workspace /tmp /etc/e 2>/dev/null',
    );
    expect(stdout).to.equal('by the agentl\n/tmp:\n\n/workspace:\n');
    await second.kill();
  });

  it('gives the working folder to the user and lets everybody write to /tmp', async () => {
    const { stdout } = await sh(
      other,
      'pwd; stat -c "%U %G %a" /workspace /home/user; stat -c %a /tmp /var/tmp /dev/shm /root /secrets',
    );
    expect(stdout).to.equal('/workspace\nuser user 755\nuser user 755\n1777\n1777\n1777\n700\n700\n');
  });

  it('has the devices that programs expect, and terminals of its own', async () => {
    const { stdout, stderr } = await sh(
      other,
      'head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo gone > /dev/null; cat /dev/zero > /dev/full; ' +
        'script -qec "tty; echo in a terminal" /dev/null < /dev/null',
    );
    const plain = stdout.replaceAll('\r', '');
    expect(plain).to.equal('3\n3\n/dev/pts/0\nin a terminal\n');
    expect(stderr).to.include('No space left');
  });
});
