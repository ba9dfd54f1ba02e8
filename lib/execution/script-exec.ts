import { orAbort } from '../base/abort.js';
import { ServiceError } from '../base/errors.js';
import type { Nomad } from '../nomad/api.js';
import type { ClaimedRunner } from '../runners/runner.js';
import { scriptCall } from '../shell/file-loop.js';
import { feed, scriptReader } from '../shell/script.js';
import type { CommandSession } from './session.js';

/** What our own scripts print is short. */
const LONGEST_ANSWER = 1000;

/** What runs scripts of ours in runners. */
export interface ScriptRunner {
  /**
   * By a session that is open for such things, where there is one; undefined where there is none, and nothing was done.
   * Rejects as `runScriptIn`.
   */
  runScript<T>(runner: ClaimedRunner, script: ScriptRun<T>): Promise<T> | undefined;
}

export interface ScriptDeps {
  readonly nomad: Pick<Nomad, 'openExec'>;
  /** Without any, each script gets an exec of its own. */
  readonly scripts?: ScriptRunner | undefined;
}

/** Runs one of our scripts in a runner, in the quickest way that there is; never in two. Rejects as that way does. */
export function runScript<T>(deps: ScriptDeps, runner: ClaimedRunner, script: ScriptRun<T>): Promise<T> {
  return deps.scripts?.runScript(runner, script) ?? runScriptAlone(deps.nomad, runner, script);
}

/**
 * Runs one of our scripts in a runner by an exec of its own and resolves with what `parse` makes of its answer. Rejects
 * as `openExec` does, with the signal's reason, or with EXECUTION_FAILED where the script did not come to its end.
 */
async function runScriptAlone<T>(
  nomad: Pick<Nomad, 'openExec'>,
  { allocationId, task }: ClaimedRunner,
  { text, parse, signal }: ScriptRun<T>,
): Promise<T> {
  const exec = await nomad.openExec({ allocationId, task, command: scriptReader(), tty: false, signal });
  try {
    let output = '';
    exec.onOutput((name, chunk) => {
      if (name === 'stdout' && output.length < LONGEST_ANSWER) output += chunk.toString('latin1');
    });
    void exec.write(feed(text));
    exec.closeStdin();
    const end = await orAbort(exec.end, signal);
    const result = parse(output);
    if (result === undefined) {
      throw new ServiceError('EXECUTION_FAILED', 'the exec of a script ended without a result', {
        details: { end },
      });
    }
    return result;
  } finally {
    exec.destroy();
  }
}

/**
 * Runs one of our scripts in an open session for files, as root, and resolves with what `parse` makes of its answer. Rejects
 * with the signal's reason, or with EXECUTION_FAILED where the script did not come to its end. The session is the
 * caller's to settle; after a rejection it is of no further use.
 */
export async function runScriptIn<T>(
  session: CommandSession,
  token: string,
  { text, parse, signal }: ScriptRun<T>,
): Promise<T> {
  let output = '';
  const running = session.run(
    {
      token,
      id: '',
      command: scriptCall(text),
      environment: {},
      workingDirectory: undefined,
      user: { kind: 'privileged' },
      splitStderr: false,
      inputBytes: 0,
    },
    {
      started: () => undefined,
      output: (_stream, chunk) => {
        if (output.length < LONGEST_ANSWER) output += chunk.toString('latin1');
      },
      user: () => undefined,
    },
  );
  const end = await orAbort(running, signal);
  const result = end.kind === 'exited' ? parse(output) : undefined;
  if (result === undefined) {
    throw new ServiceError('EXECUTION_FAILED', 'a script in a session ended without a result', {
      details: { end },
    });
  }
  return result;
}

export interface ScriptRun<T> {
  readonly text: string;
  /** Undefined for an answer that is not whole. */
  readonly parse: (output: string) => T | undefined;
  readonly signal: AbortSignal;
}
