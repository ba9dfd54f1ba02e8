import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLogger } from '../../../lib/base/log.js';
import type { Logger } from '../../../lib/base/log.js';
import type { DriverExec, TaskHandle, TaskOptions } from '../../../lib/dev-agent/driver.js';
import { SandboxDriver } from '../../../lib/dev-agent/sandbox/sandbox-driver.js';
import { skipWithoutDriver } from '../../support/needs.js';
import { eventually } from '../../support/waiting.js';

/** A sandbox driver on folders of its own, for tests. */
export class SandboxBench {
  readonly driver: SandboxDriver;
  /** Where the driver keeps its files and the allocations theirs. */
  readonly folder: string;
  #count = 0;

  private constructor(folder: string, log: Logger) {
    this.folder = folder;
    this.driver = new SandboxDriver({ log, folders: [folder] });
  }

  /** Skips the suite, with the reason, where this machine cannot run sandboxes. */
  static async open(context: Mocha.Context, log = silentLogger): Promise<SandboxBench> {
    const bench = new SandboxBench(await mkdtemp(path.join(tmpdir(), 'serai-sandbox-test-')), log);
    try {
      await bench.driver.check();
      return bench;
    } catch (error) {
      await bench.close();
      return skipWithoutDriver(context, error);
    }
  }

  start(options: Partial<TaskOptions> = {}): Promise<TaskHandle> {
    this.#count += 1;
    return this.driver.startTask({
      allocationId: `alloc-${this.#count}`,
      taskName: 'default-task',
      command: ['sleep', 'infinity'],
      environment: {},
      memoryMaxMb: undefined,
      networkAccess: false,
      allocFolder: path.join(this.folder, `alloc-${this.#count}`),
      ...options,
    });
  }

  async close(): Promise<void> {
    await this.driver.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export interface Told {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** An exec whose output is collected. */
export class Conversation {
  readonly exec: DriverExec;
  stdout = '';
  stderr = '';

  private constructor(exec: DriverExec) {
    this.exec = exec;
    exec.onOutput((stream, chunk) => {
      if (stream === 'stdout') this.stdout += chunk.toString();
      else this.stderr += chunk.toString();
    });
  }

  static async open(task: TaskHandle, command: readonly string[], tty = false): Promise<Conversation> {
    return new Conversation(await task.exec({ command, tty }));
  }

  /** Waits until the output matches. */
  async sees(pattern: RegExp): Promise<void> {
    try {
      await eventually(String(pattern), () => pattern.test(this.stdout));
    } catch (error) {
      throw new Error(`not seen in ${JSON.stringify(this.stdout)}`, { cause: error });
    }
  }

  say(text: string): void {
    void this.exec.write(Buffer.from(text));
  }

  async end(): Promise<Told> {
    const exitCode = await this.exec.exitCode;
    return { exitCode, stdout: this.stdout, stderr: this.stderr };
  }
}

/** Runs a shell command as root of the sandbox, without input, to its end. */
export async function sh(task: TaskHandle, command: string): Promise<Told> {
  const conversation = await Conversation.open(task, ['sh', '-c', command]);
  conversation.exec.closeStdin();
  return conversation.end();
}
