/** Bodies of the file routes (Poseidon API 0.2.2). Shapes only; schemas are in api/schemas. */

export interface UpdateFilesBody {
  /** Paths of files or folders; `./*` and `./` empty the working directory. */
  readonly delete?: readonly string[] | null;
  readonly copy?: readonly CopyEntry[] | null;
}

export interface CopyEntry {
  /** A path that ends in `/` is a folder. */
  readonly path: string;
  /** Base64. */
  readonly content?: string | null;
}

export interface ListFilesQuery {
  readonly path?: string;
  readonly recursive?: boolean;
  readonly privilegedExecution?: boolean;
}

export interface ReadFileQuery {
  readonly path: string;
  readonly privilegedExecution?: boolean;
}

export interface FileListAnswer {
  readonly files: readonly FileEntry[];
}

export interface FileEntry {
  /** With the prefix that was asked for. */
  readonly name: string;
  /** One character, as `ls -l` shows it: `-`, `d`, `l`, … */
  readonly entryType: string;
  readonly size: number;
  /** Unix seconds. */
  readonly modificationTime: number;
  /** Nine characters, such as `rwxr--r--`. */
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  /** Of links only; empty where it cannot be read. */
  readonly linkTarget?: string;
}
