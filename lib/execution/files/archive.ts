import { Header } from 'tar';
import { ServiceError } from '../../base/errors.js';

const BLOCK = 512;
/** Root's, readable by all, and runnable by root alone: a given file that a program cannot change. */
const MODE = 0o744;

/** One member of an archive; its path is short and plain ASCII, so that any tar takes it without extensions. */
export interface Member {
  readonly path: string;
  readonly sizeBytes: number;
  readonly bytes: () => AsyncIterable<Buffer>;
}

/** How long the archive of members of these sizes is. */
export function archiveBytes(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + BLOCK + size + padding(size), 2 * BLOCK);
}

/** A tar archive (ustar) as a stream. Throws where a member has another length than it was announced with. */
export async function* archive(members: Iterable<Member>): AsyncIterable<Buffer> {
  for (const { path, sizeBytes, bytes } of members) {
    yield header(path, sizeBytes);
    let sent = 0;
    for await (const chunk of bytes()) {
      sent += chunk.length;
      yield chunk;
    }
    if (sent !== sizeBytes)
      throw new ServiceError('UNKNOWN', `a file of ${sizeBytes} bytes came with ${sent}`);
    yield Buffer.alloc(padding(sizeBytes));
  }
  yield Buffer.alloc(2 * BLOCK);
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function header(path: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const fields = new Header({ path, size, mode: MODE, type: 'File', mtime: new Date(), uid: 0, gid: 0 });
  if (fields.encode(block, 0))
    throw new ServiceError('UNKNOWN', `the path ${path} does not fit a tar header`);
  return block;
}
