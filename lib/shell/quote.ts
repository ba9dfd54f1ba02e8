/**
 * The one way by which a text of a request enters a line of shell.
 *
 * Inside single quotes a POSIX shell takes every character as it stands, line breaks included; only the single quote
 * itself ends them, so it is written as `'\''`. A NUL cannot be part of a shell word at all and is refused.
 */
export function quote(text: string): string {
  if (text.includes('\0')) throw new RangeError('a text with a NUL character cannot be passed to a shell');
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** `name='value'`, with the value quoted. */
export function assignment(name: string, value: string): string {
  return `${name}=${quote(value)}`;
}
