/**
 * What a test needs of its machine beyond Node.
 *
 * A test whose need is not met is skipped with a line that names what is missing; in CI, which has everything, it fails
 * instead, so that nothing is left out there without anybody noticing.
 */
import { spawnSync } from 'node:child_process';

export interface Need {
  readonly isMet: boolean;
  /** What is missing, and how it is got. */
  readonly missing: string;
  /** Set where nothing that is installed helps, such as where the kernel forbids something: then CI skips too. */
  readonly isForbidden?: boolean;
}

export const isRoot = process.getuid?.() === 0;

export const LINUX: Need = { isMet: process.platform === 'linux', missing: 'Linux' };

export const ROOT: Need = { isMet: isRoot, missing: 'root' };

/** A program of this machine, and the Debian package that has it. */
export function program(name: string, aptPackage = name): Need {
  const { error } = spawnSync(name, ['--help']);
  return { isMet: error === undefined, missing: `${name}: apt-get install ${aptPackage}` };
}

/** Skips the test or suite of a hook or test, or fails in CI, where a need is not met. */
export function needs(context: Pick<Mocha.Context, 'skip'>, ...all: readonly Need[]): void {
  for (const { isMet, missing, isForbidden = false } of all) {
    if (isMet) continue;
    if (process.env['CI'] === 'true' && !isForbidden) throw new Error(`this machine lacks ${missing}`);
    console.log(`      skipped: needs ${missing}`);
    context.skip();
  }
}

/**
 * Namespaces made by `unshare` with these options, in which the command succeeds: root makes them with a program of
 * util-linux, unless the kernel forbids it.
 */
export function namespaces(options: readonly string[], command: readonly string[] = ['true']): Need[] {
  const unshare = program('unshare', 'util-linux');
  const isMade = unshare.isMet && spawnSync('unshare', [...options, ...command]).status === 0;
  const missing = `a kernel that allows unshare ${options.join(' ')}`;
  return [ROOT, unshare, { isMet: isMade, missing, isForbidden: true }];
}

/**
 * Skips a suite whose driver of the embedded agent cannot run here. In CI, which installs what they need, only a kernel
 * that forbids sandboxes is a reason.
 */
export function skipWithoutDriver(context: Mocha.Context, error: unknown): never {
  const reason = error instanceof Error ? error.message : String(error);
  if (process.env['CI'] === 'true' && !/cannot be made here|may not make/.test(reason)) throw error;
  console.log(`      skipped: ${reason}`);
  return context.skip();
}
