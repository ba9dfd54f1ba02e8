import { orAbort } from '../../base/abort.js';
import { ServiceError } from '../../base/errors.js';
import type { Lifecycle, LifecycleState } from '../../base/lifecycle.js';
import { assertNew } from '../../base/lifecycle.js';
import type { ClaimedRunner } from '../../runners/runner.js';
import { SilenceWatch } from '../silence.js';
import { copyCall } from '../../shell/copy-files.js';
import { listCall, readCall } from '../../shell/read-files.js';
import type { FileContent, FileListing, FilesApi, ListRequest, ReadRequest, UpdateRequest } from './api.js';
import { archiveBytes } from './archive.js';
import { copy, membersOf } from './copying.js';
import { assertFilePath, planFiles } from './plan.js';
import { beginDownload, beginListing } from './reading.js';
import type { ToolDeps, ToolRequest } from './tool.js';
import { nomadSilent, Tool } from './tool.js';

/**
 * File operations in claimed runners, each a call of the file loop (shell/file-loop.ts) run by a Tool. Everything streams: what is in memory at
 * any moment is a few chunks, whatever the size of a file or a listing.
 */
export class FileTransfers implements FilesApi, Lifecycle {
  readonly #deps: ToolDeps;
  readonly #tools = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: ToolDeps) {
    this.#deps = deps;
  }

  get state(): LifecycleState {
    return this.#state;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- nothing to wait for, but a failure is a rejection
  async start(): Promise<void> {
    assertNew('file transfers', this.#state);
    this.#state = 'running';
  }

  /** Ends every transfer and resolves once nothing of them is left. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async list(runner: ClaimedRunner, request: ListRequest): Promise<FileListing> {
    assertText(request.path);
    const tool = await this.#open({
      runner,
      call: listCall(request.path, request.recursive),
      inputBytes: 0,
      privileged: request.privileged,
      requestSignal: request.requestSignal,
    });
    try {
      const batches = await beginListing(tool, request.path);
      tool.answered();
      return {
        batches,
        [Symbol.asyncDispose]: () => Promise.resolve(this.#release(tool)),
      };
    } catch (error) {
      this.#release(tool);
      throw error;
    }
  }

  async read(runner: ClaimedRunner, request: ReadRequest): Promise<FileContent> {
    assertText(request.path);
    const tool = await this.#open({
      runner,
      call: readCall(request.path),
      inputBytes: 0,
      privileged: request.privileged,
      requestSignal: request.requestSignal,
    });
    try {
      const { sizeBytes, bytes } = await beginDownload(tool, request.path);
      tool.answered();
      return {
        sizeBytes,
        bytes,
        [Symbol.asyncDispose]: () => Promise.resolve(this.#release(tool)),
      };
    } catch (error) {
      this.#release(tool);
      throw error;
    }
  }

  async update(runner: ClaimedRunner, { removals, files, requestSignal }: UpdateRequest): Promise<void> {
    for (const path of removals) assertRemovable(path);
    for (const { path } of files) assertFilePath(path);
    const plan = planFiles(removals, files);
    if (plan.steps.length === 0) return;
    const members = membersOf(plan, files);
    const tool = await this.#open({
      runner,
      call: copyCall(plan.steps),
      inputBytes: members.length > 0 ? archiveBytes(members.map(({ sizeBytes }) => sizeBytes)) : 0,
      privileged: true,
      requestSignal,
    });
    try {
      const failures = await copy(tool, plan, members);
      if (failures.length > 0) throw new ServiceError('FILES_NOT_WRITTEN', failures.join('\n'));
    } finally {
      this.#release(tool);
    }
  }

  async #open(request: ToolRequest): Promise<Tool> {
    if (this.#state !== 'running') throw new ServiceError('STOPPED', `file transfers are ${this.#state}`);
    const silence = new AbortController();
    const watch = new SilenceWatch({ ...this.#deps, onSilent: () => silence.abort(nomadSilent()) });
    const requestSignal = AbortSignal.any([request.requestSignal, this.#stop.signal, silence.signal]);
    const opening = Tool.open(this.#deps, { ...request, requestSignal });
    const rest = opening.then(
      (tool) => (requestSignal.aborted ? tool[Symbol.asyncDispose]() : undefined),
      () => undefined,
    );
    this.#track(rest);
    return await orAbort(opening, requestSignal).finally(() => watch.stop());
  }

  /** Lets a tool end behind the client's back. */
  #release(tool: Tool): void {
    this.#track(tool[Symbol.asyncDispose]());
  }

  #track(work: Promise<unknown>): void {
    const tracked = work.finally(() => this.#tools.delete(tracked));
    this.#tools.add(tracked);
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    this.#stop.abort(new ServiceError('STOPPED', 'the service is being stopped'));
    while (this.#tools.size > 0) await Promise.allSettled([...this.#tools]);
    this.#state = 'stopped';
  }
}

function assertText(path: string): void {
  if (path.includes('\0'))
    throw new ServiceError('INVALID_REQUEST', 'a path holds a NUL character, which none can');
  if (path === '') throw new ServiceError('INVALID_REQUEST', 'a path is empty');
  if (Buffer.byteLength(path) > 4095)
    throw new ServiceError('INVALID_REQUEST', 'a path is longer than any can be');
}

/** A folder is emptied by `…/*`; the root and a parent cannot be removed by name. */
function assertRemovable(path: string): void {
  assertText(path);
  if (/^\/+$|(^|\/)\.\.\/*$/.test(path)) {
    throw new ServiceError('INVALID_REQUEST', `${JSON.stringify(path)} is no path that can be deleted`);
  }
}
