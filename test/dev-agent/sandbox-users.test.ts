import { existsSync, readFileSync, statSync } from 'node:fs';
import { expect } from 'chai';
import { needs, ROOT } from '../support/needs.js';
import type { TaskHandle } from '../../lib/dev-agent/driver.js';
import { Conversation, SandboxBench, sh } from './support/sandbox.js';

describe('SandboxDriver: users and privileges', () => {
  let bench: SandboxBench;
  let task: TaskHandle;

  before(async function () {
    bench = await SandboxBench.open(this);
    task = await bench.start();
  });
  after(() => bench?.close());

  it('starts programs as root, who can become the user by any of the usual ways', async () => {
    expect((await sh(task, 'id -u; id -g; id -G')).stdout).to.equal('0\n0\n0\n');
    const ways = [
      'setpriv --reuid=user --regid=user --init-groups sh -c COMMAND',
      'setpriv --reuid="$(id -u user)" --regid="$(id -g user)" --clear-groups --inh-caps=-all --bounding-set=-all sh -c COMMAND',
      'runuser -u user -- sh -c COMMAND',
      'su -s /bin/sh user -c COMMAND',
      'su user -c COMMAND',
    ];
    for (const way of ways) {
      const command =
        "'id -un; id -gn; id -Gn; cat /proc/self/status | grep CapEff; cd /home/user && touch mine /workspace/mine /tmp/mine; pwd'";
      const { stdout, exitCode } = await sh(task, way.replace('COMMAND', command));
      expect(stdout, way).to.equal('user\nuser\nuser\nCapEff:\t0000000000000000\n/home/user\n');
      expect(exitCode).to.equal(0);
      await sh(task, 'rm /tmp/mine /workspace/mine');
    }
  });

  it('lets root own, read and end what belongs to the user', async () => {
    const { stdout } = await sh(
      task,
      `setpriv --reuid=user --regid=user --clear-groups env MARK=found sleep 30 & child=$!
       until [ "$(tr '\\0' ' ' < /proc/$child/cmdline)" = 'sleep 30 ' ]; do :; done
       tr '\\0' '\\n' < /proc/$child/environ | grep MARK; ls -l /proc/$child/exe > /dev/null && echo exe
       kill $child; wait $child; echo $?
       touch /workspace/f; chown user:user /workspace/f; chmod 600 /workspace/f; stat -c %U /workspace/f; echo x > /workspace/f && echo written`,
    );
    expect(stdout).to.equal('MARK=found\nexe\n143\nuser\nwritten\n');
  });

  it('gives the user no way to root, to the processes of root or to their environment', async () => {
    const { stdout } = await sh(
      task,
      `setpriv --reuid=user --regid=user --clear-groups sh -c '
         su root -c id < /dev/null 2> /dev/null; sudo -n id 2> /dev/null; kill -9 1 2> /dev/null || echo refused
         cat /proc/1/environ 2> /dev/null || echo unreadable; ls /root 2> /dev/null || echo closed
         echo x > /etc/passwd || echo kept' 2> /dev/null`,
    );
    expect(stdout).to.equal('refused\nunreadable\nclosed\nkept\n');
  });

  it('holds root back from the kernel', async () => {
    const attempts = [
      'mount -t tmpfs none /mnt',
      'umount -l /proc/sys',
      'mount -o remount,rw /proc/sys',
      'mknod /tmp/disk b 8 0',
      'chroot / mount -t proc proc /mnt',
      'unshare --mount true',
      'date -s 2000-01-01',
      'hostname changed',
      'ip link add dummy0 type dummy',
      'nsenter --target 1 --mount true',
      'echo 1 > /proc/sys/vm/drop_caches',
      'swapoff -a && false',
      'setpriv --bounding-set=+sys_admin true && grep -q "CapBnd.*3ff" /proc/self/status',
    ];
    for (const attempt of attempts) {
      expect((await sh(task, `${attempt} 2>/dev/null`)).exitCode, attempt).not.to.equal(0);
    }
  });

  it('gives no path to devices of the host', async () => {
    const before = statSync('/dev/null').mode;
    const own = await bench.start();
    await sh(own, 'sleep 60 > /dev/null < /dev/null & chmod 600 /dev/null /proc/[0-9]*/fd/[0-2]');
    expect(statSync('/dev/null').mode).to.equal(before);
    await own.kill();
  });

  it('lets nobody make namespaces in which he would be more', async () => {
    const user = 'setpriv --reuid=user --regid=user --clear-groups unshare --user true';
    expect((await sh(task, `${user} 2>/dev/null`)).exitCode).not.to.equal(0);
    expect((await sh(task, 'unshare --user true 2>/dev/null')).exitCode).not.to.equal(0);
  });

  it('keeps its bounds when root of a sandbox replaces the programs that draw them', async function () {
    needs(this, ROOT); // it cannot replace them then
    const own = await bench.start();
    const before = readFileSync('/proc/sys/kernel/hostname', 'utf8');
    await sh(
      own,
      `cp /usr/bin/dash /tmp/dash; rm /usr/bin/setpriv
       printf '%s\\n' '#!/tmp/dash' 'umount -l /proc/sys; mount -o remount,rw /proc/sys; echo taken > /proc/sys/kernel/hostname
       umount -l /proc; mkdir /mnt/p; mount -t proc proc /mnt/p; echo x > /mnt/p/sys/kernel/core_pattern
       mknod /tmp/disk b 8 0; head -c 1 /tmp/disk > /tmp/read; chmod 000 /dev/null' > /usr/bin/setpriv; chmod +x /usr/bin/setpriv`,
    );
    const { stderr } = await sh(own, 'anything');
    expect(stderr).to.include('umount').and.to.include('/proc/sys');
    expect(readFileSync('/proc/sys/kernel/hostname', 'utf8')).to.equal(before);
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).not.to.equal('x\n');
    expect(existsSync('/tmp/disk')).to.equal(false);
    expect((await sh(task, 'stat -c %a /dev/null')).stdout).to.equal('666\n');
    await own.kill();
  });

  it('shows root of a sandbox nothing of the host while a program enters', async function () {
    needs(this, ROOT); // its root is not the host's then
    const watcher = await Conversation.open(task, ['python3', '-u', '-c', WATCHER]);
    await watcher.sees(/watching/);
    for (let round = 0; round < 300 && !watcher.stdout.includes('host program'); round += 1)
      await sh(task, 'true');
    watcher.say('enough\n');
    watcher.exec.closeStdin();
    const { stdout, stderr } = await watcher.end();
    expect(stdout).to.match(/^watching\nhost program\nRead-only file system\n$/, stderr);
  });
});

/**
 * Holds on to the program of every process that is not of the sandbox's own files, and tries to write to it once nobody
 * runs it any more. Tells, too, of every process whose root is another one.
 */
const WATCHER = `
import os, select, sys
own, root, held = os.stat('/usr/bin').st_dev, os.stat('/').st_ino, {}
print('watching')
while not select.select([sys.stdin], [], [], 0)[0]:
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.stat(f'/proc/{pid}/root/').st_ino != root: print('another root')
        except OSError: pass
        try:
            program = os.open(f'/proc/{pid}/exe', os.O_PATH)
        except OSError: continue
        device = os.fstat(program).st_dev
        if device == own or device in held: os.close(program)
        else:
            held[device] = program
            print('host program')
for program in held.values():
    try: print(os.open(f'/proc/self/fd/{program}', os.O_WRONLY), 'opened')
    except OSError as error: print(error.strerror)
`;
