import type { Readable } from 'node:stream';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { createLogger } from '../base/log.js';
import { systemClock } from '../base/clock.js';
import { DevAgent } from './agent.js';
import type { AgentArguments } from './arguments.js';
import { ArgumentError, parseArguments, USAGE } from './arguments.js';
import type { TaskDriver } from './driver.js';
import { chooseDriver } from './drivers.js';

/** What the command has of the process. */
export interface AgentIo {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly signals: {
    on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
    off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  };
  /** Its end is the end of the parent, for `--die-with-parent`; default: standard input. */
  readonly stdin?: Readable;
}

const FAILURE = 1;
const BAD_USAGE = 2;

/**
 * Runs the agent until it is told to end, and resolves with the exit code.
 *
 * Prints one line on standard output when it is ready: `agent ready http://127.0.0.1:PORT driver=NAME`. SIGTERM, SIGINT
 * and, with `--die-with-parent`, the end of standard input stop it and every task. Never rejects.
 */
export async function runAgent(args: readonly string[], io: AgentIo): Promise<number> {
  let given: AgentArguments;
  try {
    given = parseArguments(args);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    io.stderr.write(`serai agent: ${error.message}\nserai agent --help lists the flags\n`);
    return BAD_USAGE;
  }
  if (given.help) {
    io.stdout.write(USAGE);
    return 0;
  }
  const told = endOf(io, given);
  const log = createLogger({ level: 'warn', format: 'text' });
  try {
    const driver = await chooseDriver(given.driver, { clock: systemClock, log });
    return await serve(driver, given, { io, told: told.promise, log });
  } catch (error) {
    io.stderr.write(`serai agent: ${messageOf(error)}\n`);
    return FAILURE;
  } finally {
    told.unlisten();
  }
}

async function serve(
  { driver, remarks }: { driver: TaskDriver; remarks: readonly string[] },
  given: AgentArguments,
  { io, told, log }: { io: AgentIo; told: Promise<void>; log: Logger },
): Promise<number> {
  const { port, execDelayMs, startDelayMs, maxStarts, maxExecsOpening, namespaces } = given;
  await using agent = new DevAgent({
    driver,
    port,
    log,
    execDelayMs,
    startDelayMs,
    ...(maxStarts === undefined ? {} : { maxStarts }),
    ...(maxExecsOpening === undefined ? {} : { maxExecsOpening }),
    namespaces: ['default', ...namespaces],
  });
  await agent.start();
  for (const remark of remarks) io.stderr.write(`serai agent: ${remark}\n`);
  io.stdout.write(`agent ready ${agent.address} driver=${driver.name}\n`);
  await told;
  return 0;
}

/** Resolves when the agent is told to end. */
function endOf(
  io: AgentIo,
  { diesWithParent }: AgentArguments,
): { promise: Promise<void>; unlisten: () => void } {
  let end: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  io.signals.on('SIGTERM', end);
  io.signals.on('SIGINT', end);
  const stdin = diesWithParent ? (io.stdin ?? process.stdin) : undefined;
  // It has to be read for its end to be seen; what it says is of no interest.
  stdin?.resume();
  stdin?.on('end', end).on('close', end).on('error', end);
  return {
    promise,
    unlisten: () => {
      io.signals.off('SIGTERM', end);
      io.signals.off('SIGINT', end);
      stdin?.off('end', end).off('close', end).destroy();
    },
  };
}
