/**
 * The few programs that simulated tasks know: `echo`, `printf` (of plain text), `true`, `false`, `cat`, `sleep`, and `sh
 * -c` with a line of them, joined by `;` or `&&`, with `exit N`, quotes and `>&2`. They do the same each time, and
 * nothing on the machine.
 */
export interface ProgramIo {
  readonly stdout: (text: string | Buffer) => void;
  readonly stderr: (text: string | Buffer) => void;
  /** The next piece of input, or undefined at its end. */
  readonly read: () => Promise<Buffer | undefined>;
  readonly sleep: (ms: number) => Promise<void>;
}

type Program = (args: readonly string[], io: ProgramIo) => Promise<number> | number;

const PROGRAMS: Readonly<Record<string, Program>> = {
  true: () => 0,
  false: () => 1,
  echo: (args, io) => {
    const isBare = args[0] === '-n';
    io.stdout(args.slice(isBare ? 1 : 0).join(' ') + (isBare ? '' : '\n'));
    return 0;
  },
  printf: ([format = '', ...args], io) => {
    const escaped = format.replace(/\\n/g, '\n').replace(/\\t/g, '\t');
    io.stdout(escaped.replace(/%s/g, () => args.shift() ?? ''));
    return 0;
  },
  cat: async (_args, io) => {
    for (let chunk = await io.read(); chunk !== undefined; chunk = await io.read()) io.stdout(chunk);
    return 0;
  },
  sleep: async ([time = '0'], io) => {
    await io.sleep(time === 'infinity' ? Infinity : Number(time) * 1000);
    return 0;
  },
  sh: (args, io) => runShell(args, io),
  bash: (args, io) => runShell(args, io),
};

/** The program of a command, by the last part of its path; undefined where it is not known. */
export function findProgram(file: string): Program | undefined {
  const name = file.slice(file.lastIndexOf('/') + 1);
  return Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
}

/** How `exit` leaves the line that it stands in. */
class ShellExit extends Error {
  override readonly name = 'ShellExit';
  readonly code: number;

  constructor(code: number) {
    super('exit');
    this.code = code;
  }
}

async function runShell(args: readonly string[], io: ProgramIo): Promise<number> {
  if (args[0] !== '-c' || args[1] === undefined) return runCat(io);
  try {
    return await runLine(args[1], io);
  } catch (error) {
    if (error instanceof ShellExit) return error.code;
    throw error;
  }
}

/** A shell without a command reads its input to the end and does nothing with it. */
async function runCat(io: ProgramIo): Promise<number> {
  while ((await io.read()) !== undefined);
  return 0;
}

async function runLine(line: string, io: ProgramIo): Promise<number> {
  let code = 0;
  for (const { words, after } of splitCommands(line)) {
    if (after === '&&' && code !== 0) continue;
    if (words.length > 0) code = await runCommand(words, io, code);
  }
  return code;
}

async function runCommand(words: readonly string[], io: ProgramIo, lastCode: number): Promise<number> {
  const toStderr = words.at(-1) === '>&2';
  const [name = '', ...args] = toStderr ? words.slice(0, -1) : words;
  if (name === 'exit') throw new ShellExit(args[0] === undefined ? lastCode : Number(args[0]) & 255);
  if (name === ':') return 0;
  if (name === 'exec') return runCommand(args, io, lastCode);
  const program = findProgram(name);
  if (!program) {
    io.stderr(`sh: 1: ${name}: not found\n`);
    return 127;
  }
  return program(args, toStderr ? { ...io, stdout: io.stderr } : io);
}

interface ShellCommand {
  readonly words: readonly string[];
  /** What stands before the command. */
  readonly after: ';' | '&&';
}

/** Words with their quotes removed, command by command. */
function splitCommands(line: string): ShellCommand[] {
  const commands: { words: string[]; after: ';' | '&&' }[] = [{ words: [], after: ';' }];
  for (const [token] of line.matchAll(/;|\n|&&|>&2|(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;&>'"\\])+/g)) {
    if (token === ';' || token === '\n') commands.push({ words: [], after: ';' });
    else if (token === '&&') commands.push({ words: [], after: '&&' });
    else commands.at(-1)?.words.push(unquote(token));
  }
  return commands;
}

function unquote(token: string): string {
  return token.replace(
    /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g,
    (_all, single?: string, double?: string, escaped?: string) =>
      single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
  );
}
