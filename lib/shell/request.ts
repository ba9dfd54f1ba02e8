import type { RunnerUser } from './frames.js';
import { assignment, quote } from './quote.js';

/**
 * A request to run one command, as the scripts in the runner read it: a header line with its token, its number of lines
 * and its length in bytes, then that much shell, which is nothing but quoted assignments, a function that exports
 * quoted variables, and `set --`.
 *
 * A short one is read line by line; of a longer one, or one that is not all ASCII (some shells read characters), the
 * header says 0 lines, and it is read by its length.
 */
export interface CommandRequest {
  /** Digits; frames the command's output and marks control lines as the loop's own. */
  readonly token: string;
  /** Public id, in the command's environment as SERAI_EXECUTION. */
  readonly id: string;
  readonly command: string;
  /** Variables on top of the image's, in any order. */
  readonly environment: Readonly<Record<string, string>>;
  /** Further ones, which may act on the tool that becomes the user. */
  readonly exported?: Readonly<Record<string, string>>;
  readonly workingDirectory: string | undefined;
  readonly user: UserChoice;
  /** With a TTY: keep stderr apart from it. */
  readonly splitStderr: boolean;
  /** For the file loop: exactly how much input the command gets; undefined for what knows no such bound. */
  readonly inputBytes?: number;
}

export type UserChoice =
  /** As the exec itself runs, which is root in most images. */
  | { readonly kind: 'privileged' }
  /** The first of these that the image has; how to become it is found out and reported. */
  | { readonly kind: 'first-of'; readonly names: readonly string[] }
  /** As found out before. */
  | { readonly kind: 'known'; readonly user: RunnerUser };

/** The kernel takes 128 KiB for one argument; longer commands go through a file. */
const LONGEST_ARGUMENT = 100_000;

/** Reading a byte takes a system call each, so beyond this another program is cheaper. */
const MOST_BYTES_READ_BY_LINES = 2048;

/** Relative paths start in the image's own working directory; `-` and options must not be read into a name. */
function directory(path: string): string {
  return path.startsWith('/') ? path : `./${path}`;
}

function userLines(choice: UserChoice): string[] {
  switch (choice.kind) {
    case 'privileged':
      return ['serai_as none'];
    case 'first-of':
      return [assignment('serai_users', choice.names.join(' '))];
    case 'known': {
      const { tool, name, uid, gid, home } = choice.user;
      return [['serai_as', ...[tool, name, uid, gid, home].map(quote)].join(' ')];
    }
  }
}

/** The bytes to send, header included. What is not said has its default, which `serai_receive` sets. */
export function formatRequest(request: CommandRequest): Buffer {
  const { command, workingDirectory, inputBytes, exported = {} } = request;
  const isLong = Buffer.byteLength(command) > LONGEST_ARGUMENT;
  const body = Buffer.from(
    [
      assignment('serai_id', request.id),
      ...(request.splitStderr ? ['serai_split=1'] : []),
      ...(isLong ? ['serai_long=1'] : []),
      ...(workingDirectory === undefined ? [] : [assignment('serai_cwd', directory(workingDirectory))]),
      ...(inputBytes === undefined ? [] : [`serai_in=${inputBytes}`]),
      ...userLines(request.user),
      assignment('serai_c', command),
      ...(Object.keys(exported).length === 0
        ? []
        : [`serai_export() { export ${words(exported).join(' ')}; }`]),
      ['set --', ...words(request.environment)].join(' '),
      '',
    ].join('\n'),
  );
  return Buffer.concat([Buffer.from(`${request.token} ${linesOf(body)} ${body.length}\n`), body]);
}

function words(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).map(([name, value]) => quote(`${name}=${value}`));
}

/** How many lines to read, 0 where the length is to be used instead. */
function linesOf(body: Buffer): number {
  if (body.length > MOST_BYTES_READ_BY_LINES) return 0;
  let lines = 0;
  for (const byte of body) {
    if (byte > 0x7e) return 0;
    if (byte === 0x0a) lines += 1;
  }
  return lines;
}

/** Asks a loop to put its terminal in order once more; `typed` was typed behind all other input, or is nothing. */
export function formatAgain(token: string, typed: string): Buffer {
  return Buffer.from(`${token} again ${typed === '' ? '-' : typed}\n`);
}

/**
 * Has a loop make the next command's place ready: a process of its user waits there for the request, which is then to come with
 * the same token, the same user and the same `splitStderr`, and small enough to be read by lines.
 */
export function formatArm(token: string, { user, splitStderr }: ArmedFor): Buffer {
  const lines = [
    ...userLines({ kind: 'known', user }),
    ...(splitStderr ? ['serai_split=1'] : []),
    'serai_armed=1',
    '',
  ];
  return Buffer.from(`${token} ${lines.length - 1} 0\n${lines.join('\n')}`);
}

/** What an armed loop expects. */
export interface ArmedFor {
  readonly user: RunnerUser;
  readonly splitStderr: boolean;
}

/** Sends the process away that waits in an armed loop. */
export function formatDisarm(): Buffer {
  return Buffer.from('0 never -\n');
}

/** The request in a form that an armed loop can take, or undefined: what it waits for is a plain command of its user. */
export function armedRequest(request: CommandRequest, { user, splitStderr }: ArmedFor): Buffer | undefined {
  const isPlain =
    request.user.kind === 'known' &&
    request.user.user.uid === user.uid &&
    request.user.user.tool === user.tool &&
    request.splitStderr === splitStderr &&
    request.workingDirectory === undefined &&
    Object.keys(request.environment).every(isHarmlessName);
  if (!isPlain) return undefined;
  const exported = { ...request.exported, ...request.environment };
  const text = formatRequest({ ...request, environment: {}, exported });
  return / 0 \d+$/.test(text.toString('latin1', 0, text.indexOf(0x0a))) ? undefined : text;
}

/** True for a variable that means nothing to a shell, to the loader or to the tool that becomes the user. */
export function isHarmlessName(name: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(name) && !SPECIAL.test(name);
}

const SPECIAL = new RegExp(
  '^(LD|DYLD|GLIBC|MALLOC|MUSL|BASH|SHELL|LC|PS\\d|PATH|HOME|USER|LOGNAME|LANG|NLS|LOC|GCONV|TZ|IFS|ENV|CDPATH|PWD|OLDPWD|OPT|PPID|' +
    'UID|EUID|GROUPS|RANDOM|SECONDS|LINENO|FUNCNAME|DIRSTACK|HOST|RES|MACHTYPE|OSTYPE|PIPESTATUS|SHLVL|TMPDIR|SERAI|NOMAD)',
);

/** True for a user that a process can become for good, without a parent of another user. */
export function canWait({ tool }: RunnerUser): boolean {
  return /^(none|setpriv.*|su-exec|gosu)$/.test(tool);
}
