import type { Entry } from './entry.js';
import { run } from '../process/run.js';

/**
 * Removes a folder of sandboxes: files in it may belong to users whose files only the builder of sandboxes may remove.
 * Never rejects; what cannot be removed is found again as a leftover.
 */
export async function removeFolder(entry: Entry, folder: string): Promise<void> {
  await run(entry.wrap(['rm', '-rf', '--', folder])).catch(() => undefined);
}
