import type { FileEntry } from '../../protocol/files.js';
import type { ClaimedRunner } from '../../runners/runner.js';

/**
 * What the API asks of file transfers; `FileTransfers` (transfers.ts) implements it. Every call rejects with RUNNER_GONE
 * as soon as the runner is no longer its client's, and holds the runner's inactivity timer back.
 */
export interface FilesApi {
  /**
   * The entries of a folder (without itself), or the one entry of what is none. FILE_UNREADABLE where the path is missing
   * or closed to the user; folders further down that are closed are left out.
   */
  list(runner: ClaimedRunner, request: ListRequest): Promise<FileListing>;
  /** The bytes of a file, links followed. FILE_UNREADABLE where it is missing, closed to the user or no regular file. */
  read(runner: ClaimedRunner, request: ReadRequest): Promise<FileContent>;
  /**
   * Deletes, then copies, as root. Resolves when all is in place; FILES_NOT_WRITTEN names each path that failed, the others
   * are written all the same. INVALID_REQUEST for a path that no file can have; nothing is changed then.
   */
  update(runner: ClaimedRunner, request: UpdateRequest): Promise<void>;
}

export interface ListRequest {
  readonly path: string;
  readonly recursive: boolean;
  readonly privileged: boolean;
  readonly requestSignal: AbortSignal;
}

export interface ReadRequest {
  readonly path: string;
  readonly privileged: boolean;
  readonly requestSignal: AbortSignal;
}

/** A listing on its way out. `batches` throws where it broke off; for one reader. */
export interface FileListing extends AsyncDisposable {
  readonly batches: AsyncIterable<readonly FileEntry[]>;
}

/** One file on its way out. `bytes` throws where fewer come than were announced. */
export interface FileContent extends AsyncDisposable {
  /** Undefined for files whose length is not known beforehand, such as those of /proc. */
  readonly sizeBytes: number | undefined;
  readonly bytes: AsyncIterable<Buffer>;
}

export interface UpdateRequest {
  readonly removals: readonly string[];
  readonly files: readonly SourceFile[];
  readonly requestSignal: AbortSignal;
}

export interface SourceFile {
  /** A path that ends in `/` is a folder. */
  readonly path: string;
  /** Undefined for a folder. */
  readonly sizeBytes: number | undefined;
  /** Exactly `sizeBytes` bytes. */
  readonly bytes: () => AsyncIterable<Buffer>;
}
