import { randomUUID } from 'node:crypto';
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../../lib/base/clock.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import { silentLogger } from '../../../lib/base/log.js';
import { ColdSessions } from '../../../lib/execution/cold-sessions.js';
import { FileTransfers } from '../../../lib/execution/files/transfers.js';
import { RunnerBooks } from '../../../lib/execution/runner-books.js';
import type { FileEntry } from '../../../lib/protocol/files.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { EXECUTION_CONFIG, NEVER, STEADY_PULSE, testFolders } from '../../support/executions.js';
import { KeptSession } from '../../support/kept-session.js';
import { LocalExecs } from '../../support/local-exec.js';
import { isRoot } from '../../support/needs.js';
import { eachShell } from '../../support/shells.js';

export function source(
  name: string,
  content: string | Buffer,
): { path: string; sizeBytes: number; bytes: () => AsyncIterable<Buffer> } {
  const data = Buffer.from(content);
  return { path: name, sizeBytes: data.length, bytes: () => pieces(data) };
}

export function folder(name: string): {
  path: string;
  sizeBytes: undefined;
  bytes: () => AsyncIterable<Buffer>;
} {
  return { path: name, sizeBytes: undefined, bytes: () => pieces(Buffer.alloc(0)) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
async function* pieces(data: Buffer): AsyncIterable<Buffer> {
  for (let at = 0; at < data.length; at += 65_536) yield data.subarray(at, at + 65_536);
}

export async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

type Source = ReturnType<typeof source> | ReturnType<typeof folder>;

/** File transfers by real shells in a folder of this machine, which stands for the runner. */
export class LocalFiles {
  readonly workspace = mkdtempSync(path.join(tmpdir(), 'files-'));
  readonly runner = new TestRunner();
  readonly files: FileTransfers;
  readonly #ids: string[] = [];
  /** The one session that serves all operations, on the warm path. */
  readonly kept: KeptSession | undefined;

  private constructor(shell: readonly string[], temperature: 'cold' | 'warm') {
    if (isRoot) chownSync(this.workspace, 65_534, 65_534);
    const shared = {
      nomad: new LocalExecs({ shell, cwd: this.workspace }),
      clock: systemClock,
      log: silentLogger,
      pulse: STEADY_PULSE,
    };
    const randomness = { ...systemRandomness, uuid: () => this.#newId() };
    const folders = testFolders(randomness);
    this.kept = temperature === 'warm' ? new KeptSession(shared, () => folders.next()) : undefined;
    this.files = new FileTransfers({
      ...shared,
      randomness,
      sessions: this.kept ?? new ColdSessions({ ...shared, folders }),
      books: new RunnerBooks({ ...shared, stopSignal: NEVER }),
      config: { execution: EXECUTION_CONFIG, runner: { user: 'nobody' } },
    });
  }

  static async start(shell: readonly string[], temperature: 'cold' | 'warm'): Promise<LocalFiles> {
    const started = new LocalFiles(shell, temperature);
    await started.files.start();
    return started;
  }

  /** Ends everything, and fails where something is left. */
  async end(): Promise<void> {
    await this.files.stop();
    await this.kept?.close();
    expect(this.runner.activities).to.equal(0);
    expect(this.runner.abandoned).to.deep.equal([]);
    const names = this.#ids.flatMap((id) => [id, id.replaceAll('-', '')]);
    const left = readdirSync('/tmp').filter((name) => names.some((id) => name.endsWith(id)));
    expect(left).to.deep.equal([]);
    rmSync(this.workspace, { recursive: true });
  }

  readonly at = (...parts: string[]): string => path.join(this.workspace, ...parts);

  readonly update = (sources: readonly Source[], removals: readonly string[] = []): Promise<void> =>
    this.files.update(this.runner, { removals, files: sources, requestSignal: NEVER });

  readonly list = async (name: string, recursive = true, privileged = true): Promise<FileEntry[]> => {
    const request = { path: name, recursive, privileged, requestSignal: NEVER };
    await using listing = await this.files.list(this.runner, request);
    const entries: FileEntry[] = [];
    for await (const batch of listing.batches) entries.push(...batch);
    return entries;
  };

  readonly read = async (
    name: string,
    privileged = true,
  ): Promise<{ size: number | undefined; data: Buffer }> => {
    const request = { path: name, privileged, requestSignal: NEVER };
    await using content = await this.files.read(this.runner, request);
    const chunks: Buffer[] = [];
    for await (const chunk of content.bytes) chunks.push(chunk);
    return { size: content.sizeBytes, data: Buffer.concat(chunks) };
  };

  #newId(): string {
    const id = randomUUID();
    this.#ids.push(id);
    return id;
  }
}

/** Declares tests for each shell, over a session of each operation's own and over one that serves all. */
export function eachWay(declare: (local: () => LocalFiles) => void): void {
  eachShell((shell) => {
    for (const temperature of ['cold', 'warm'] as const) {
      describe(`sh being ${shell[0]}, ${temperature}`, () => {
        let local: LocalFiles;
        beforeEach(async () => {
          local = await LocalFiles.start(shell, temperature);
        });
        afterEach(() => local.end());
        declare(() => local);
      });
    }
  });
}
