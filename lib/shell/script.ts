/**
 * Scripts that the service runs in a runner: kept readable here, sent short.
 *
 * They are POSIX sh for dash, BusyBox and bash alike. Each name of theirs begins with `serai_`, because a name that
 * the image exports stays exported when it is assigned, and would reach the program with another value.
 */

/** Drops comments, blank lines and indentation. Never used on a text that came from outside. */
export function script(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => `${line}\n`)
    .join('');
}

/** Ends a script on standard input; no script has such a line. */
const END = '.';

/**
 * Reads a script from standard input up to its end line and runs it; what follows on standard input is the script's.
 * `read` takes no byte too many, and a script that was cut off is not run.
 */
const BOOTSTRAP = `serai_s=;while IFS= read -r serai_l&&[ "$serai_l" != ${END} ];do serai_s="$serai_s$serai_l
";done;[ "$serai_l" = ${END} ]&&eval "$serai_s"`;

/**
 * The argument vector for a script that comes over standard input. `name` stands among its arguments, so that whoever
 * cleans up later knows its process by it.
 */
export function scriptReader(name = 'serai'): readonly string[] {
  return ['sh', '-c', BOOTSTRAP, name];
}

/** What to write to a `scriptReader`. */
export function feed(text: string): Buffer {
  return Buffer.from(`${text}${END}\n`);
}
