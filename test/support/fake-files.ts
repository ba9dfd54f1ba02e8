import { ServiceError } from '../../lib/base/errors.js';
import type {
  FileContent,
  FileListing,
  FilesApi,
  ReadRequest,
  UpdateRequest,
} from '../../lib/execution/files/api.js';
import { isFolder } from '../../lib/execution/files/plan.js';
import type { ClaimedRunner } from '../../lib/runners/runner.js';

/** Files in memory, by path as it was asked for; fields stage failures. */
export class FakeFiles implements FilesApi {
  readonly contents = new Map<string, Buffer>();
  /** False only counts the bytes of copies. */
  keepsContents = true;
  bytesSeen = 0;
  /** Updates that were asked for. */
  updates = 0;
  /** Holds updates back until it resolves. */
  updateGate: Promise<void> = Promise.resolve();
  /** Thrown by the next calls, whichever they are. */
  failure: unknown;

  async update(_runner: ClaimedRunner, { removals, files }: UpdateRequest): Promise<void> {
    this.#check();
    this.updates += 1;
    await this.updateGate;
    for (const path of removals) this.contents.delete(path);
    for (const { path, bytes } of files) {
      const chunks: Buffer[] = [];
      for await (const chunk of bytes()) {
        this.bytesSeen += chunk.length;
        if (this.keepsContents) chunks.push(chunk);
      }
      if (this.keepsContents && !isFolder(path)) this.contents.set(path, Buffer.concat(chunks));
    }
  }

  list(): Promise<FileListing> {
    this.#check();
    const entries = [...this.contents].map(([name, { length }]) => ({
      name,
      entryType: '-',
      size: length,
      modificationTime: 1_700_000_000,
      permissions: 'rwxr--r--',
      owner: 'root',
      group: 'root',
    }));
    return Promise.resolve({ batches: once(entries), [Symbol.asyncDispose]: () => Promise.resolve() });
  }

  read(_runner: ClaimedRunner, { path }: ReadRequest): Promise<FileContent> {
    this.#check();
    const content = this.contents.get(path);
    if (!content)
      return Promise.reject(
        new ServiceError('FILE_UNREADABLE', 'file not found or insufficient permissions'),
      );
    return Promise.resolve({
      sizeBytes: content.length,
      bytes: once(content),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  }

  #check(): void {
    if (this.failure) throw this.failure as Error;
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
async function* once<T>(value: T): AsyncIterable<T> {
  yield value;
}
