import { ServiceError } from '../../base/errors.js';
import type { Lifecycle, LifecycleState } from '../../base/lifecycle.js';
import { assertNew } from '../../base/lifecycle.js';
import type { FileEntry } from '../../protocol/files.js';
import type { ClaimedRunner } from '../../runners/runner.js';
import { copyScript, stagedPath } from '../../shell/copy-files.js';
import { LIST_FILES, READ_FILE, UNREADABLE } from '../../shell/read-files.js';
import { LineReader } from '../line-reader.js';
import type {
  FileContent,
  FileListing,
  FilesApi,
  ListRequest,
  ReadRequest,
  SourceFile,
  UpdateRequest,
} from './api.js';
import { archive } from './archive.js';
import { ListingParser } from './listing.js';
import type { FilePlan } from './plan.js';
import { assertFilePath, planFiles } from './plan.js';
import type { ToolDeps, ToolRequest } from './tool.js';
import { Tool } from './tool.js';

/**
 * File operations in claimed runners, each a script of lib/shell run by a Tool. Everything streams: what is in memory at
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
      script: LIST_FILES,
      variables: { serai_path: request.path, serai_depth: request.recursive ? '' : '1' },
      privileged: request.privileged,
      requestSignal: request.requestSignal,
    });
    try {
      const output = tool.output[Symbol.asyncIterator]();
      const first = await output.next();
      if (first.done && (await tool.exitCode) === UNREADABLE) throw unreadable(request.path);
      if (first.done) await assertListed(tool);
      return {
        batches: entries(tool, first, output, new ListingParser(request.path)),
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
      script: READ_FILE,
      variables: { serai_path: request.path },
      privileged: request.privileged,
      requestSignal: request.requestSignal,
    });
    try {
      const output = tool.output[Symbol.asyncIterator]();
      const { line, rest } = await readLine(output);
      if (line === undefined) {
        const exitCode = await tool.exitCode;
        if (exitCode === UNREADABLE) throw unreadable(request.path);
        throw new ServiceError('EXECUTION_FAILED', `the file could not be read (exit code ${exitCode})`);
      }
      const announced = /^\d+$/.test(line) ? Number(line) : 0;
      const first = rest.length > 0 ? { done: false, value: rest } : await output.next();
      // Files of /proc and the like announce 0 bytes and have content all the same.
      const sizeBytes = announced > 0 || first.done ? announced : undefined;
      return {
        sizeBytes,
        bytes: fileBytes(tool, first, output, sizeBytes),
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
    const stage = `/tmp/.serai-${this.#deps.randomness.uuid()}`;
    const tool = await this.#open({
      runner,
      script: copyScript(stage, plan.steps),
      variables: {},
      privileged: true,
      requestSignal,
    });
    try {
      const failures = await this.#copy(tool, plan, files);
      if (failures.length > 0) throw new ServiceError('FILES_NOT_WRITTEN', failures.join('\n'));
    } finally {
      this.#release(tool);
    }
  }

  async #copy(tool: Tool, plan: FilePlan, files: readonly SourceFile[]): Promise<string[]> {
    const failures: string[] = [];
    let isDone = false;
    let sending: Promise<void> = Promise.resolve();
    const lines = new LineReader((line) => {
      const failed = /^F (\d+) (\d+) (.*)$/.exec(line);
      if (failed)
        failures.push(`tar: ${plan.pathOf(Number(failed[1]), Number(failed[2]))}: Cannot open: ${failed[3]}`);
      else if (line === 'R') {
        sending = send(tool, plan, files);
        // Awaited below; a failure before that must not count as unhandled.
        sending.catch(() => undefined);
      } else if (line === 'D') isDone = true;
    });
    for await (const chunk of tool.output) lines.push(chunk);
    const exitCode = await tool.exitCode;
    await sending;
    if (!isDone)
      throw new ServiceError('EXECUTION_FAILED', `the files could not be copied (exit code ${exitCode})`);
    return failures;
  }

  async #open(request: ToolRequest): Promise<Tool> {
    if (this.#state !== 'running') throw new ServiceError('STOPPED', `file transfers are ${this.#state}`);
    const requestSignal = AbortSignal.any([request.requestSignal, this.#stop.signal]);
    const opening = Tool.open(this.#deps, { ...request, requestSignal });
    this.#track(
      opening.then(
        () => undefined,
        () => undefined,
      ),
    );
    return opening;
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

async function* entries(
  tool: Tool,
  first: IteratorResult<Buffer, unknown>,
  output: AsyncIterator<Buffer>,
  parser: ListingParser,
): AsyncIterable<readonly FileEntry[]> {
  for (let next = first; !next.done; next = await output.next()) yield parser.push(next.value);
  parser.end();
  await assertListed(tool);
}

/** A listing that could not be made is no empty one. */
async function assertListed(tool: Tool): Promise<void> {
  const exitCode = await tool.exitCode;
  if (exitCode !== 0)
    throw new ServiceError('EXECUTION_FAILED', `the files could not be listed (exit code ${exitCode})`);
}

/** The archive of a plan, into the standard input of the copy script. */
async function send(tool: Tool, plan: FilePlan, files: readonly SourceFile[]): Promise<void> {
  const members = files.flatMap(({ bytes, sizeBytes = 0 }, index) => {
    const staged = plan.staged(index);
    return staged ? [{ path: stagedPath(staged.step, staged.file), sizeBytes, bytes }] : [];
  });
  for await (const chunk of archive(members)) await tool.write(chunk);
  tool.closeStdin();
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

/** The words are those that existing clients look for. */
function unreadable(path: string): ServiceError {
  return new ServiceError(
    'FILE_UNREADABLE',
    `${JSON.stringify(path.slice(0, 200))}: file not found or insufficient permissions`,
  );
}
