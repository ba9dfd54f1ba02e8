import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { ProcessExit } from './exit.js';
import { exitOf } from './exit.js';
import { CLEAN_ENVIRONMENT, firstLine } from './run.js';

/** How long a step of a dialogue may take before it counts as failed, on a machine however loaded. */
const STEP_MS = 20_000;
const LONGEST_COMPLAINT = 4_096;

/**
 * A child that says in lines on standard output how far it is, and reads from standard input when to go on.
 *
 * The pipe of its standard input stays open as long as the agent lives: whoever reads it to the end knows that the
 * agent is gone, however it ended.
 */
export class Dialogue {
  /** Resolves when the child has ended. Never rejects. */
  readonly ended: Promise<ProcessExit>;
  readonly #child: ChildProcess;
  #text = '';
  #complaint = '';
  #onLine: () => void = () => undefined;
  #isOver = false;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.ended = exitOf(child);
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      this.#onLine();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#complaint.length < LONGEST_COMPLAINT) this.#complaint += chunk.toString();
    });
    // A child that is gone is told nothing; its end is seen by `close`.
    child.stdin?.on('error', () => undefined);
    child.once('close', () => {
      this.#isOver = true;
      this.#onLine();
    });
  }

  /** Starts the child in a session of its own. */
  static open(command: readonly string[]): Promise<Dialogue> {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { stdio: 'pipe', cwd: '/', env: CLEAN_ENVIRONMENT, detached: true });
    return new Promise((resolve, reject) => {
      child.once('spawn', () => resolve(new Dialogue(child)));
      child.once('error', reject);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves with what follows `word` on the next line. Rejects with the child's complaint where it ends instead. */
  expect(word: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.#onLine = () => undefined;
        act();
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`${STEP_MS} ms went by without "${word}"`))),
        STEP_MS,
      );
      this.#onLine = () => {
        const end = this.#text.indexOf('\n');
        if (end >= 0) {
          const line = this.#text.slice(0, end);
          this.#text = this.#text.slice(end + 1);
          settle(() => {
            if (line === word || line.startsWith(`${word} `)) resolve(line.slice(word.length + 1));
            else reject(new Error(`"${line}" came where "${word}" was due`));
          });
        } else if (this.#isOver) {
          settle(() => reject(new Error(firstLine(this.#complaint) || `it ended before "${word}"`)));
        }
      };
      this.#onLine();
    });
  }

  /** Lets the child go on from where it waits. */
  proceed(): void {
    this.#child.stdin?.write('\n');
  }

  /** Closes its standard input, by which a child that waits ends. */
  async close(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
