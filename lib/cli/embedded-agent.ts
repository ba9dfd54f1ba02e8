/**
 * The embedded agent as a child process of `start`.
 *
 * Its standard input is a pipe that nothing is written to: when this process goes, however it goes, the pipe closes and
 * the agent ends with every task. It is in a session of its own, so that Ctrl-C reaches the service alone, which drains
 * while its runners are still there.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { deadline, orAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { Talk } from './talk.js';

export interface EmbeddedAgentOptions {
  /** The file of this program. */
  readonly program: string;
  /** Flags for the agent. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly talk: Talk;
  readonly signal: AbortSignal;
}

const START_MS = 30_000;
const STOP_MS = 10_000;
/** What the agent prints once it listens. */
const READY = /^agent ready (http:\/\/\S+) driver=(\S+)$/;

export class EmbeddedAgent implements AsyncDisposable {
  /** Base URL of its Nomad API. */
  readonly address: string;
  readonly #child: AgentProcess;
  #stopping: Promise<void> | undefined;

  constructor(child: AgentProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  /** Resolves when its process has ended. */
  get ended(): Promise<void> {
    return this.#child.ended;
  }

  /** Lets it end its tasks and itself; it is killed where it does not. Never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#child.end();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Starts the agent and resolves once it listens. Rejects, and leaves no process, where it does not come up. */
export async function openEmbeddedAgent(options: EmbeddedAgentOptions): Promise<EmbeddedAgent> {
  const { clock, talk, signal } = options;
  const child = new AgentProcess(options);
  using late = deadline(clock, START_MS, 'NOMAD_UNREACHABLE', 'the embedded agent did not start in time');
  try {
    const hasEnded = child.ended.then(() => {
      throw new ServiceError('NOMAD_UNREACHABLE', 'the embedded agent has ended instead of starting');
    });
    const { address, driver } = await orAbort(
      Promise.race([child.ready, hasEnded]),
      AbortSignal.any([signal, late.signal]),
    );
    talk.say('agent', `${driver} driver on ${address}`);
    return new EmbeddedAgent(child, address);
  } catch (error) {
    await child.end();
    throw error;
  }
}

/** The child with its pipes. */
class AgentProcess {
  /** Resolves with what the agent says when it listens; never, where it does not. */
  readonly ready: Promise<{ address: string; driver: string }>;
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #clock: Clock;

  constructor({ program, args, env, clock, talk }: EmbeddedAgentOptions) {
    const command = [...process.execArgv, program, 'agent', '--port', '0', '--die-with-parent', ...args];
    const child = spawn(process.execPath, command, { stdio: ['pipe', 'pipe', 'pipe'], detached: true, env });
    this.#child = child;
    this.#clock = clock;
    child.stdin.on('error', () => undefined); // it has gone; `ended` tells
    this.ended = once(child, 'exit').then(
      () => undefined,
      () => undefined, // it could not even be started, so it has ended
    );
    createInterface({ input: child.stderr }).on('line', (line) =>
      talk.say('agent', line.replace(/^serai agent: /, '')),
    );
    this.ready = new Promise((resolve) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [, address, driver] = READY.exec(line) ?? [];
        if (address !== undefined && driver !== undefined) resolve({ address, driver });
      });
    });
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    const waiting = new AbortController();
    await Promise.race([this.ended, this.#clock.sleep(STOP_MS, waiting.signal)]);
    waiting.abort();
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
    await this.ended;
  }
}
