import path from 'node:path';
import { silentLogger } from '../../../lib/base/log.js';
import { SandboxDriver } from '../../../lib/dev-agent/sandbox/sandbox-driver.js';

/** An agent to be killed: runs a task, an exec and a terminal on the folder it is given, and says so. */
const folder = process.argv[2] ?? '';
const driver = new SandboxDriver({ log: silentLogger, folders: [folder] });
const task = await driver.startTask({
  allocationId: 'killed',
  taskName: 'default-task',
  command: ['sleep', '4720'],
  environment: {},
  memoryMaxMb: 256,
  networkAccess: false,
  allocFolder: path.join(folder, 'killed'),
});
for (const tty of [false, true]) {
  const exec = await task.exec({
    command: ['sh', '-c', 'setsid -f sleep 4721; echo up; exec sleep 4722'],
    tty,
  });
  await new Promise<void>((resolve) => exec.onOutput(() => resolve()));
}
process.stdout.write('up\n');
