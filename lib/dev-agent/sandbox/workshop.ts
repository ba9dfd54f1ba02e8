import path from 'node:path';
import type { Logger } from '../../base/log.js';
import { Scope } from '../../base/scope.js';
import { Cgroups } from './cgroups.js';
import type { Entry } from './entry.js';
import { RootEntry } from './entry.js';
import type { HostView } from './host-view.js';
import { viewHost } from './host-view.js';
import type { SharedLayer } from './layer.js';
import { buildSharedLayer } from './layer.js';
import { guardLeftovers } from './leftovers.js';
import { PipeMaker } from '../process/pipes.js';
import { removeFolder } from './sandbox-folder.js';
import { makeStateFolder } from './state-folder.js';
import { openToolbox } from './toolbox.js';
import { assertTools } from './tools.js';
import { UnprivilegedEntry } from './unprivileged-entry.js';

/** What the sandboxes of one agent are made with. */
export interface Workshop extends AsyncDisposable {
  readonly entry: Entry;
  readonly view: HostView;
  readonly layer: SharedLayer;
  readonly cgroups: Cgroups;
  readonly pipes: PipeMaker;
  /** Where each sandbox has its folder, and whether it writes there or to memory. */
  readonly folder: string;
  readonly store: 'folder' | 'memory';
}

export interface WorkshopOptions {
  readonly log: Logger;
  readonly hidden?: readonly string[];
  readonly folders?: readonly string[];
}

/**
 * Looks at the machine, removes what dead agents left, and prepares what sandboxes share. Rejects with a sentence where
 * something is missing, and then leaves nothing.
 */
export async function openWorkshop({ log, hidden = [], folders }: WorkshopOptions): Promise<Workshop> {
  if (process.platform !== 'linux') throw new Error('sandboxes need Linux');
  await assertTools();
  const scope = new Scope();
  try {
    const entry =
      process.getuid?.() === 0 ? await RootEntry.open(openToolbox) : await UnprivilegedEntry.open();
    scope.defer(() => entry.close());
    const state = await makeStateFolder(folders);
    const guardian = guardLeftovers(state.path);
    scope.defer(() => guardian.stop());
    scope.defer(() => removeFolder(entry, state.path));
    for (const name of state.leftovers) await removeFolder(entry, path.join(state.parent, name));
    const cgroups = await Cgroups.open(state.name, state.leftovers);
    scope.defer(() => cgroups.remove());
    for (const folder of cgroups.folders) guardian.tell(folder);
    if (cgroups.missing.length > 0) {
      log.warn('no cgroups to limit sandboxes by, their limits are not enforced', {
        missing: cgroups.missing,
      });
    }
    const unseen = [...hidden, state.parent];
    const view = await viewHost(unseen);
    const layer = await buildSharedLayer({
      folder: path.join(state.path, 'layer'),
      entry,
      view,
      hidden: unseen,
    });
    const pipes = new PipeMaker();
    scope.defer(() => pipes.close());
    const { store, path: folder } = state;
    return { entry, view, layer, cgroups, pipes, folder, store, [Symbol.asyncDispose]: () => scope.close() };
  } catch (error) {
    await scope.close();
    throw error;
  }
}
