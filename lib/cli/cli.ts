import { messageOf, ServiceError } from '../base/errors.js';
import { packageVersion } from '../config/version.js';
import { nearest } from '../config/keys.js';
import { agent } from './commands/agent.js';
import { serve, SERVE_FLAGS } from './commands/serve.js';
import { start, START_FLAGS } from './commands/start.js';
import { describeFlags, UsageError } from './flags.js';
import type { CliIo } from './io.js';

interface Command {
  readonly summary: string;
  /** Undefined where the command answers --help itself. */
  readonly flags: Parameters<typeof describeFlags>[0] | undefined;
  run(args: readonly string[], io: CliIo): Promise<number>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  start: {
    summary: 'everything on this machine: agent, service, environments, a sample program',
    flags: START_FLAGS,
    run: start,
  },
  serve: { summary: 'the service alone, for a Nomad that is there', flags: SERVE_FLAGS, run: serve },
  agent: { summary: 'the embedded agent alone', flags: undefined, run: agent },
};

const FAILURE = 1;
const USAGE = 2;

/** Runs the command line `args` and resolves with the exit code. Never rejects. */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === '--version') {
    io.stdout.write(`${packageVersion()}\n`);
    return 0;
  }
  if (name === undefined || name === '--help' || name === 'help') {
    io.stdout.write(describeCommands());
    return name === undefined ? USAGE : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) {
    const meant = nearest(name, Object.keys(COMMANDS));
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    io.stderr.write(`serai: there is no command ${name}${hint}\nserai --help lists them\n`);
    return USAGE;
  }
  if (command.flags && rest.includes('--help')) {
    io.stdout.write(`serai ${name}: ${command.summary}\n\n${describeFlags(command.flags)}`);
    return 0;
  }
  try {
    return await command.run(rest, io);
  } catch (error) {
    if (error instanceof UsageError) {
      io.stderr.write(`serai ${name}: ${error.message}\nserai ${name} --help lists the flags\n`);
      return USAGE;
    }
    // What is no ServiceError is a fault of the program; its stack tells where.
    const text = error instanceof ServiceError || !(error instanceof Error) ? messageOf(error) : error.stack;
    io.stderr.write(`serai: ${text}\n`);
    return FAILURE;
  }
}

function describeCommands(): string {
  const rows = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(6)}  ${summary}\n`);
  return `usage: serai COMMAND [FLAGS]\n\n${rows.join('')}\n  serai COMMAND --help lists the flags; serai --version\n`;
}
