import { ServiceError } from '../../base/errors.js';
import { LIST_FIELDS } from '../../shell/read-files.js';
import type { FileEntry } from '../../protocol/files.js';

/**
 * Turns the records of the listing script into entries, whatever the borders of the chunks they come in.
 *
 * A record is its fields, each ended by a NUL. What is kept between chunks is at most one record; names that are no
 * UTF-8 get U+FFFD where they are none.
 */
export class ListingParser {
  /** The path as the caller wrote it; the script saw it with `./` before it where it began with neither `/` nor `.`. */
  readonly #prefix: string;
  readonly #fields: string[] = [];
  #rest: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#prefix = /^(\/|\.\/|\.\.\/|\.$|\.\.$)/.test(path) ? '' : './';
  }

  /** Entries that became whole with this chunk. */
  push(chunk: Buffer): FileEntry[] {
    const entries: FileEntry[] = [];
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (let end = data.indexOf(0); end >= 0; end = data.indexOf(0, start)) {
      this.#fields.push(data.toString('utf8', start, end));
      start = end + 1;
      if (this.#fields.length === LIST_FIELDS.length) entries.push(this.#entry(this.#fields.splice(0)));
    }
    this.#rest = data.subarray(start);
    return entries;
  }

  /** Throws where the listing broke off inside a record. */
  end(): void {
    if (this.#rest.length === 0 && this.#fields.length === 0) return;
    throw new ServiceError('EXECUTION_FAILED', 'the listing of files broke off');
  }

  #entry(fields: readonly string[]): FileEntry {
    const [mode = '', size = '', modified = '', owner = '', group = '', path = '', target = ''] = fields;
    const sizeBytes = Number(size);
    const seconds = Math.floor(Number(modified));
    if (mode.length !== 10 || !Number.isSafeInteger(sizeBytes) || !Number.isSafeInteger(seconds)) {
      throw new ServiceError('EXECUTION_FAILED', 'the listing of files has an entry that cannot be read');
    }
    return {
      name: path.startsWith(this.#prefix) ? path.slice(this.#prefix.length) : path,
      entryType: mode.charAt(0),
      size: sizeBytes,
      modificationTime: seconds,
      permissions: mode.slice(1),
      owner,
      group,
      ...(mode.startsWith('l') ? { linkTarget: target } : {}),
    };
  }
}
