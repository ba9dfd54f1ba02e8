import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { systemClock } from '../../../lib/base/clock.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import { newToken } from '../../../lib/execution/command.js';
import type { CommandEnd, CommandSession } from '../../../lib/execution/session.js';
import { openTerminalSession } from '../../../lib/execution/terminal-session.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { LocalExecs } from '../../support/local-exec.js';
import { eventually } from '../../support/waiting.js';
import { PATIENCE_MS } from './place.js';

export interface LocalAnswer {
  readonly end: CommandEnd;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of the answer that came after its end. */
  readonly late: () => number;
}

/** A session with a terminal of this machine, for many commands. */
export class LocalSession {
  readonly session: CommandSession;
  readonly folder: string;

  private constructor(session: CommandSession, folder: string) {
    this.session = session;
    this.folder = folder;
  }

  static async open(shell: readonly string[]): Promise<LocalSession> {
    const folder = `/tmp/.serai-${randomUUID()}`;
    const session = await openTerminalSession(
      { nomad: new LocalExecs({ shell, cwd: '/tmp' }), clock: systemClock },
      { runner: new TestRunner(), folder, keep: true, signal: new AbortController().signal },
    );
    return new LocalSession(session, folder);
  }

  /** Runs what `command` makes of the token that frames its output. */
  async run(
    command: (token: string) => string,
    environment: (token: string) => Record<string, string> = () => ({}),
  ): Promise<LocalAnswer> {
    const token = newToken(systemRandomness);
    const chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
    let late = 0;
    let isOver = false;
    const end = await this.session.run(
      {
        ...{ token, id: randomUUID(), command: command(token), environment: environment(token) },
        ...{ workingDirectory: undefined, splitStderr: true, user: { kind: 'privileged' } },
      },
      {
        started: () => undefined,
        output: (stream, bytes) => {
          if (isOver) late += bytes.length;
          chunks[stream].push(bytes);
        },
        user: () => undefined,
      },
    );
    isOver = true;
    const text = (name: 'stdout' | 'stderr'): string => Buffer.concat(chunks[name]).toString('latin1');
    return { end, stdout: text('stdout'), stderr: text('stderr'), late: () => late };
  }

  /** Ends the session; nothing of it is left. */
  async close(): Promise<void> {
    await this.session.close();
    await eventually('the folder to go', () => !existsSync(this.folder), PATIENCE_MS);
  }
}
