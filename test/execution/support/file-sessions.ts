import { systemClock } from '../../../lib/base/clock.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import { newToken } from '../../../lib/execution/command.js';
import { openFileSession } from '../../../lib/execution/file-session.js';
import type { CommandEnd, CommandSession } from '../../../lib/execution/session.js';
import type { CommandRequest, UserChoice } from '../../../lib/shell/request.js';
import { TestRunner } from '../../support/claimed-runner.js';
import type { LocalExecs } from '../../support/local-exec.js';

const NEVER = new AbortController().signal;

export const ROOT: UserChoice = { kind: 'privileged' };
export const NOBODY: UserChoice = { kind: 'first-of', names: ['nobody'] };

export function openLocalSession(nomad: LocalExecs, folder: string): Promise<CommandSession> {
  const runner = new TestRunner();
  return openFileSession({ nomad, clock: systemClock }, { runner, folder, signal: NEVER });
}

export interface Call {
  readonly command: string;
  readonly user?: UserChoice;
  readonly input?: Buffer;
  readonly id?: string;
  /** Called when the call begins, with its token; by default it is given its input. */
  readonly started?: (token: string) => void;
}

export interface Answer {
  readonly end: CommandEnd;
  readonly output: Buffer;
}

export function fileRequest({ command, user = ROOT, input, id = '' }: Call): CommandRequest {
  return {
    token: newToken(systemRandomness),
    id,
    command,
    environment: {},
    workingDirectory: undefined,
    user,
    splitStderr: false,
    inputBytes: input?.length ?? 0,
  };
}

/** Runs one call in a session to its end, and does not settle it. */
export async function call(session: CommandSession, options: Call): Promise<Answer> {
  const request = fileRequest(options);
  const { input } = options;
  const chunks: Buffer[] = [];
  const end = await session.run(request, {
    started: () => {
      if (options.started) options.started(request.token);
      else if (input) void session.write(input);
    },
    output: (_stream, bytes) => chunks.push(bytes),
    user: () => undefined,
  });
  return { end, output: Buffer.concat(chunks) };
}

/** A call whose end must be orderly; what it printed. */
export async function printed(session: CommandSession, options: Call): Promise<string> {
  const { end, output } = await call(session, options);
  const aftermath = await session.settle();
  if (end.kind !== 'exited' || aftermath !== 'clean') {
    throw new Error(`the call ended with ${JSON.stringify(end)}, and the session is ${aftermath}`);
  }
  return output.toString();
}
