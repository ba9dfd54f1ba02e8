import { ServiceError } from '../../base/errors.js';
import type { FileEntry } from '../../protocol/files.js';
import { INCOMPLETE, UNREADABLE } from '../../shell/read-files.js';
import { ListingParser } from './listing.js';
import type { Tool } from './tool.js';

/**
 * What a listing call prints, as entries. Resolves once it is known that the path could be read; FILE_UNREADABLE where it
 * is missing or closed to the user.
 *
 * The first record is that of the path itself, and is no entry where that is a folder.
 */
export async function beginListing(tool: Tool, path: string): Promise<AsyncIterable<readonly FileEntry[]>> {
  const parser = new ListingParser(path);
  const output = tool.output[Symbol.asyncIterator]();
  const first: FileEntry[] = [];
  let isStart = true;
  while (first.length === 0) {
    const next = await output.next();
    if (next.done) {
      parser.end();
      const exitCode = await tool.exitCode;
      if (exitCode === INCOMPLETE || exitCode === UNREADABLE) throw unreadable(path);
      if (exitCode !== 0 || isStart) throw notListed(exitCode);
      break;
    }
    for (const entry of parser.push(next.value)) {
      if (!isStart || entry.entryType !== 'd') first.push(entry);
      isStart = false;
    }
  }
  return batches(tool, parser, first, output);
}

async function* batches(
  tool: Tool,
  parser: ListingParser,
  first: readonly FileEntry[],
  output: AsyncIterator<Buffer>,
): AsyncIterable<readonly FileEntry[]> {
  if (first.length > 0) yield first;
  for (let next = await output.next(); !next.done; next = await output.next()) yield parser.push(next.value);
  parser.end();
  const exitCode = await tool.exitCode;
  if (exitCode !== 0 && exitCode !== INCOMPLETE) throw notListed(exitCode);
}

/** The bytes of a file, once its length is known. FILE_UNREADABLE where it is missing, closed to the user or no file. */
export async function beginDownload(
  tool: Tool,
  path: string,
): Promise<{ readonly sizeBytes: number | undefined; readonly bytes: AsyncIterable<Buffer> }> {
  const output = tool.output[Symbol.asyncIterator]();
  const { line, rest } = await readLine(output);
  if (line === undefined) {
    const exitCode = await tool.exitCode;
    if (exitCode === UNREADABLE) throw unreadable(path);
    throw new ServiceError('EXECUTION_FAILED', `the file could not be read (exit code ${exitCode})`);
  }
  const announced = /^\d+$/.test(line) ? Number(line) : 0;
  const first = rest.length > 0 ? { done: false, value: rest } : await output.next();
  // Files of /proc and the like announce 0 bytes and have content all the same.
  const sizeBytes = announced > 0 || first.done ? announced : undefined;
  return { sizeBytes, bytes: fileBytes(tool, first, output, sizeBytes) };
}

/** The first line of an output, and what came after it in the same chunk. */
async function readLine(
  output: AsyncIterator<Buffer>,
): Promise<{ readonly line: string | undefined; readonly rest: Buffer }> {
  let data: Buffer = Buffer.alloc(0);
  for (let next = await output.next(); !next.done; next = await output.next()) {
    data = Buffer.concat([data, next.value]);
    const end = data.indexOf('\n');
    if (end >= 0) return { line: data.toString('latin1', 0, end), rest: data.subarray(end + 1) };
  }
  return { line: undefined, rest: data };
}

/**
 * The bytes of a file: exactly as many as were announced, where that was done. A file that grew meanwhile is cut there; one
 * that shrank throws, since the answer's length is already promised.
 */
async function* fileBytes(
  tool: Tool,
  first: IteratorResult<Buffer, unknown>,
  output: AsyncIterator<Buffer>,
  sizeBytes: number | undefined,
): AsyncIterable<Buffer> {
  let left = sizeBytes ?? Number.POSITIVE_INFINITY;
  // Also after the last byte it waits for what comes then, which is the end unless the file grew.
  for (let next = first; !next.done && left > 0; next = await output.next()) {
    const chunk = next.value.length > left ? next.value.subarray(0, left) : next.value;
    left -= chunk.length;
    yield chunk;
  }
  if (left === 0) return;
  if (sizeBytes !== undefined)
    throw new ServiceError('EXECUTION_FAILED', 'the file became shorter while it was read');
  const exitCode = await tool.exitCode;
  if (exitCode !== 0)
    throw new ServiceError(
      'EXECUTION_FAILED',
      `the file could not be read to its end (exit code ${exitCode})`,
    );
}

function notListed(exitCode: number): ServiceError {
  return new ServiceError('EXECUTION_FAILED', `the files could not be listed (exit code ${exitCode})`);
}

/** The words are those that existing clients look for. */
function unreadable(path: string): ServiceError {
  return new ServiceError(
    'FILE_UNREADABLE',
    `${JSON.stringify(path.slice(0, 200))}: file not found or insufficient permissions`,
  );
}
