import path from 'node:path';
import { silentLogger } from '../../../lib/base/log.js';
import { messageOf } from '../../../lib/base/errors.js';
import { SandboxDriver } from '../../../lib/dev-agent/sandbox/sandbox-driver.js';
import { Conversation, sh } from './sandbox.js';

/** Runs as an ordinary user on the folder it is given, and prints what happens in a sandbox as one line of JSON. */
const folder = process.argv[2] ?? '';
const driver = new SandboxDriver({ log: silentLogger, folders: [folder] });

async function tell(): Promise<Record<string, unknown>> {
  try {
    await driver.check();
  } catch (error) {
    return { refused: messageOf(error) };
  }
  const task = await driver.startTask({
    allocationId: 'unprivileged',
    taskName: 'default-task',
    command: ['sleep', 'infinity'],
    environment: {},
    memoryMaxMb: undefined,
    networkAccess: false,
    allocFolder: path.join(folder, 'alloc'),
  });
  const asUser = 'setpriv --reuid=user --regid=user --init-groups sh -c';
  const ids = await sh(
    task,
    `id -u; ${asUser} "id -un; touch mine; touch /etc/x || echo refused" 2>/dev/null; stat -c %U mine`,
  );
  const writes = await sh(
    task,
    'touch /etc/serai-was-here /usr/serai-was-here /tmp/t /alloc/a && echo written; ls -A /root',
  );
  const network = await sh(
    task,
    'tail -n +3 /proc/net/dev | tr -d " " | cut -d: -f1; ps -e --no-headers | wc -l',
  );
  const kernel = await sh(
    task,
    '(umount /proc/sys || echo x > /proc/sys/kernel/hostname || mknod /tmp/n c 1 3) 2>/dev/null || echo refused',
  );
  const terminal = await Conversation.open(task, ['sh', '-c', 'stty size < /dev/tty; exec sleep 60'], true);
  await terminal.sees(/24 80/);
  terminal.say('\x03');
  const interrupted = await terminal.end();
  const left = await Conversation.open(task, ['sh', '-c', 'echo up; sleep 4723']);
  await left.sees(/up/);
  await task.kill();
  await driver.stop();
  return {
    ids: ids.stdout,
    writes: writes.stdout,
    network: network.stdout,
    kernel: kernel.stdout,
    interrupted: interrupted.exitCode,
  };
}

process.stdout.write(`${JSON.stringify(await tell())}\n`);
