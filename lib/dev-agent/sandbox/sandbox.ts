import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Cgroups, SandboxCgroups, SandboxLimits } from './cgroups.js';
import { Dialogue } from '../process/dialogue.js';
import type { Entry } from './entry.js';
import { foldersOf, sandboxFstab } from './fstab.js';
import type { HostView } from './host-view.js';
import type { SharedLayer } from './layer.js';
import { removeFolder } from './sandbox-folder.js';
import { run } from '../process/run.js';
import {
  confined,
  CONFINE,
  FORBID_NAMESPACES,
  INIT,
  SETUP,
  SHED,
  SHED_WITH_TERMINAL,
  WAIT,
} from './script.js';

/** What the sandboxes of an agent have in common. */
export interface SandboxDeps {
  readonly entry: Entry;
  readonly view: HostView;
  readonly layer: SharedLayer;
  readonly cgroups: Cgroups;
  /** Where each has its folder, and whether it writes there or to memory. */
  readonly folder: string;
  readonly store: 'folder' | 'memory';
}

export interface SandboxOptions {
  /** Tells it from the others of the agent. */
  readonly name: string;
  readonly hostname: string;
  readonly networkAccess: boolean;
  readonly allocFolder: string;
  readonly localFolder: string;
  readonly limits: SandboxLimits;
}

/**
 * One set of namespaces with its process 1, in which commands can be entered. It knows nothing of tasks.
 *
 * How it is built and what keeps it alive: script.ts.
 */
export class Sandbox {
  /** Resolves when nothing of it runs any more. Never rejects. */
  readonly ended: Promise<void>;
  /** Its limits, and the evidence of what they did. */
  readonly cgroups: SandboxCgroups;
  readonly #deps: SandboxDeps;
  readonly #options: SandboxOptions;
  readonly #builder: Dialogue;
  /** The number of its process 1 outside; 0 while that is not known. */
  #pid = 0;
  #isOver = false;

  private constructor(deps: SandboxDeps, options: SandboxOptions, parts: SandboxParts) {
    this.#deps = deps;
    this.#options = options;
    this.#builder = parts.builder;
    this.cgroups = parts.cgroups;
    // Process 1 ends after all others of its PID namespace, and the builder waits for it.
    this.ended = parts.builder.ended.then(() => {
      this.#isOver = true;
    });
  }

  /** Builds one; when that fails nothing is left. */
  static async start(deps: SandboxDeps, options: SandboxOptions): Promise<Sandbox> {
    const base = path.join(deps.folder, options.name);
    const cgroups = await deps.cgroups.create(options.name, options.limits);
    let sandbox: Sandbox | undefined;
    try {
      await mkdir(base);
      await writeFile(`${base}.fstab`, sandboxFstab({ ...deps, ...options, base }));
      const builder = await Dialogue.open(buildCommand(deps, options, base));
      sandbox = new Sandbox(deps, options, { builder, cgroups });
      await sandbox.#build();
      return sandbox;
    } catch (error) {
      if (sandbox) await sandbox.destroy();
      else await removeAll(deps.entry, base, cgroups);
      throw error;
    }
  }

  /** Its root directory as seen from outside. */
  get root(): string {
    return `/proc/${this.#pid}/root`;
  }

  /**
   * The command that runs `command` in it, as a new session. With `tty` it is to be started with a terminal as its
   * standard output and error alone, and the session controls that.
   */
  enterCommand(command: readonly string[], { part, tty }: { part: 'main' | 'exec'; tty: boolean }): string[] {
    const { entry } = this.#deps;
    const { networkAccess } = this.#options;
    const target = String(this.#pid);
    const namespaces = ['--user', '--mount', '--ipc', '--uts', ...(networkAccess ? [] : ['--net'])];
    const inside = ['nsenter', '--target', target, ...namespaces, '--wd', '--', ...confined(command)];
    const session = ['setsid', ...(tty ? ['--ctty'] : []), ...inside];
    const waiter = ['sh', '-c', WAIT, 'exec', ...this.cgroups.filesOf(part), '--', ...session];
    const outside = [
      'nsenter',
      ...entry.nsenterOptions,
      `--pid=/proc/${target}/ns/pid`,
      '--no-fork',
      '--',
      ...waiter,
    ];
    return ['bash', '--norc', '--noprofile', '-p', '-c', tty ? SHED_WITH_TERMINAL : SHED, 'exec', ...outside];
  }

  /** Ends process 1, and thereby everything. */
  kill(): void {
    if (this.#isOver) return; // its number may be another's
    if (this.#pid === 0) {
      this.#builder.kill();
      return;
    }
    try {
      process.kill(this.#pid, 'SIGKILL');
    } catch {
      // it has ended already
    }
  }

  /** Ends it if it has not ended, and removes what it wrote and its cgroups. Never rejects. */
  async destroy(): Promise<void> {
    this.kill();
    await this.ended;
    await removeAll(this.#deps.entry, path.join(this.#deps.folder, this.#options.name), this.cgroups);
  }

  async #build(): Promise<void> {
    const builder = this.#builder;
    const pid = Number(await builder.expect('pid'));
    this.#pid = pid;
    await this.cgroups.add(pid, 'exec');
    await builder.expect('user');
    const { entry } = this.#deps;
    await entry.mapIds(pid);
    const forbid = ['nsenter', `--user=/proc/${pid}/ns/user`, '--', 'sh', '-c', FORBID_NAMESPACES];
    await run(entry.wrap(forbid));
    builder.proceed();
    await builder.expect('armed');
    builder.proceed();
  }
}

interface SandboxParts {
  readonly builder: Dialogue;
  readonly cgroups: SandboxCgroups;
}

function buildCommand(
  { entry, view, layer, store }: SandboxDeps,
  { hostname, networkAccess }: SandboxOptions,
  base: string,
): readonly string[] {
  const network = networkAccess ? 'host' : 'none';
  const devices = entry.kind === 'root' ? 'make' : 'bind';
  const owner = `${layer.user.uid}:${layer.user.gid}`;
  const namespaces = ['--mount', '--pid', '--ipc', '--uts', ...(networkAccess ? [] : ['--net'])];
  const init = confined(['sh', '-c', INIT], ['--clear-groups', '--pdeathsig', 'KILL']);
  const settings = [
    base,
    `${base}.fstab`,
    layer.devTemplate,
    devices,
    store,
    network,
    hostname,
    owner,
    CONFINE,
  ];
  const lists = [...view.links, '--', ...foldersOf(view), '--', ...init];
  const setup = ['sh', '-c', SETUP, 'sandbox', ...settings, ...lists];
  const unshare = [
    'unshare',
    ...namespaces,
    '--fork',
    '--kill-child',
    '--propagation',
    'private',
    '--',
    ...setup,
  ];
  return entry.wrap(['setpriv', '--pdeathsig', 'KILL', '--', ...unshare]);
}

async function removeAll(entry: Entry, base: string, cgroups: SandboxCgroups): Promise<void> {
  await rm(`${base}.fstab`, { force: true });
  await removeFolder(entry, base);
  await cgroups.remove();
}
