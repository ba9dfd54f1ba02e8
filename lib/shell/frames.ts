/**
 * How the scripts in a runner frame what a command prints, and what they tell of it.
 *
 * The output of a command stands between a start and an end marker on each of its streams: a byte that no text uses,
 * the token of the command, and 0 or 1. Digits only, because a program may set its terminal to change letters
 * (`stty olcuc`); the leading byte keeps a text that ends in a digit from being held back as a possible marker.
 */
const MARK = '\x1d';

export function startMarker(token: string): Buffer {
  return Buffer.from(`${MARK}${token}0`);
}

export function endMarker(token: string): Buffer {
  return Buffer.from(`${MARK}${token}1`);
}

/** The same markers as a `printf` format, for the scripts; takes the token. */
export const START_FORMAT = "'\\035%s0'";
export const END_FORMAT = "'\\035%s1'";

/** Why a runner did not begin a command. */
export const REFUSALS = ['tools', 'folder', 'user', 'root-user', 'no-drop', 'directory'] as const;
export type Refusal = (typeof REFUSALS)[number];

/** A process of ours in a runner: its id, and session and controlling terminal as /proc has them (0: none). */
export interface RunnerProcess {
  readonly pid: number;
  readonly session: number;
  readonly terminal: number;
}

/** A line that the scripts print before, and with a terminal beside, what a command prints. */
export type ControlLine =
  | { readonly kind: 'ready'; readonly process: RunnerProcess }
  | { readonly kind: 'user'; readonly token: string; readonly user: RunnerUser }
  | { readonly kind: 'started'; readonly token: string }
  | { readonly kind: 'exited'; readonly token: string; readonly exitCode: number }
  /** Everything is in order again after a command; `isAlone`: no process lives that was not there before it. */
  | { readonly kind: 'idle'; readonly token: string; readonly isAlone: boolean }
  /** The token is `-` where no request was read yet. */
  | { readonly kind: 'refused'; readonly token: string; readonly refusal: Refusal };

/** Who runs the commands of a runner, and by which of its tools. */
export interface RunnerUser {
  readonly tool: string;
  readonly name: string;
  readonly uid: string;
  readonly gid: string;
  readonly home: string;
}

const READY = /^R (\d+) (\d+) (\d+)$/;
const USER = /^U (\d+) (\S+) (\S+) (\d+) (\d+) (.*)$/;
const STARTED = /^S (\d+)$/;
const EXITED = /^X (\d+) (\d{1,3})$/;
const IDLE = /^I (\d+) (clean|suspect)$/;
const REFUSED = /^E (\d+|-) ([a-z-]+)$/;

/** Undefined for a line that is none of ours. */
export function parseControlLine(line: string): ControlLine | undefined {
  const ready = READY.exec(line);
  if (ready) {
    const [pid, session, terminal] = ready.slice(1).map(Number);
    return { kind: 'ready', process: { pid: pid ?? 0, session: session ?? 0, terminal: terminal ?? 0 } };
  }
  const user = USER.exec(line);
  if (user) {
    const [, token = '', tool = '', name = '', uid = '', gid = '', home = ''] = user;
    return { kind: 'user', token, user: { tool, name, uid, gid, home } };
  }
  const started = STARTED.exec(line);
  if (started) return { kind: 'started', token: started[1] ?? '' };
  const exited = EXITED.exec(line);
  if (exited) return { kind: 'exited', token: exited[1] ?? '', exitCode: Number(exited[2]) };
  const idle = IDLE.exec(line);
  if (idle) return { kind: 'idle', token: idle[1] ?? '', isAlone: idle[2] === 'clean' };
  const refused = REFUSED.exec(line);
  const refusal = REFUSALS.find((name) => name === refused?.[2]);
  return refusal === undefined ? undefined : { kind: 'refused', token: refused?.[1] ?? '', refusal };
}
