import { ServiceError } from '../../base/errors.js';
import type { FileStep, StagedFile } from '../../shell/copy-files.js';

/**
 * Turns the paths of a request into steps for the copy script, and its failures back into paths.
 *
 * Removals come first, then folders, then files; files of one folder are one step. Of several files with one path the
 * last wins.
 */
export interface FilePlan {
  readonly steps: readonly FileStep[];
  /** The path, as the caller wrote it, of an item of a step. */
  pathOf(step: number, item: number): string;
  /** The staged file of each index of the request's files; undefined for one that a later file replaces. */
  staged(file: number): { readonly step: number; readonly file: StagedFile } | undefined;
}

/** What is to be copied, without its content: known before any of it is sent. */
export interface PlannedFile {
  readonly path: string;
  /** Undefined for a folder. */
  readonly sizeBytes: number | undefined;
}

/** Longest names that every tar writes without an extension of the format. */
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function planFiles(removals: readonly string[], files: readonly PlannedFile[]): FilePlan {
  const steps: FileStep[] = [];
  const paths: string[][] = [];
  const add = (step: FileStep, itemPaths: string[]): number => {
    paths.push(itemPaths);
    return steps.push(step) - 1;
  };

  for (const [folder, names] of groupByFolder(removals.filter((path) => !emptiesFolder(path)))) {
    add(
      { kind: 'remove', folder, names: names.map(({ name }) => name) },
      names.map(({ path }) => path),
    );
  }
  for (const path of removals.filter(emptiesFolder)) {
    add({ kind: 'empty', folder: path.replace(/\*$/, '') }, [path]);
  }
  for (const { path } of files.filter(({ path }) => isFolder(path)))
    add({ kind: 'folder', folder: path }, [path]);

  const staged = new Map<number, { step: number; file: StagedFile }>();
  const contents = files.flatMap((file, index) => (isFolder(file.path) ? [] : [{ ...file, index }]));
  const last = new Map(contents.map((file) => [normal(file.path), file]));
  const indexByPath = new Map([...last.values()].map(({ path, index }) => [path, index]));
  for (const [folder, names] of groupByFolder([...last.values()].map(({ path }) => path))) {
    const group = names.map(({ name, path }, position): StagedFile & { index: number } => {
      const index = indexByPath.get(path) ?? -1;
      const alias = PLAIN_NAME.test(name) ? name : `@${position}`;
      return { name, alias, sizeBytes: files[index]?.sizeBytes ?? 0, index };
    });
    const step = add(
      {
        kind: 'place',
        folder,
        files: group.map(({ name, alias, sizeBytes }) => ({ name, alias, sizeBytes })),
      },
      names.map(({ path }) => path),
    );
    for (const { index, ...file } of group) staged.set(index, { step, file });
  }
  return {
    steps,
    pathOf: (step, item) => paths[step]?.[item] ?? paths[step]?.[0] ?? '?',
    staged: (file) => staged.get(file),
  };
}

/** True for a path that names a folder to be made. */
export function isFolder(path: string): boolean {
  return path.endsWith('/');
}

/** `./*` and, as older clients send it, `./`; likewise below a folder. */
function emptiesFolder(path: string): boolean {
  return path.endsWith('/*') || path === '*' || path === './' || path === '.';
}

function normal(path: string): string {
  return path
    .split('/')
    .filter((part, index) => (part !== '' && part !== '.') || (index === 0 && part === ''))
    .join('/');
}

/** Throws INVALID_REQUEST for a path that no file can have. */
export function assertFilePath(path: string): void {
  const name = path.replace(/\/+$/, '').split('/').at(-1);
  if (path.includes('\0')) throw invalid(path, 'has a NUL character');
  if (path === '') throw invalid(path, 'is empty');
  if (name === '..') throw invalid(path, 'ends in ..');
}

function invalid(path: string, why: string): ServiceError {
  return new ServiceError('INVALID_REQUEST', `the path ${JSON.stringify(path.slice(0, 200))} ${why}`);
}

/** Paths by the folder they are in, in order of their first; the last component is the name. */
function groupByFolder(paths: readonly string[]): Map<string, { name: string; path: string }[]> {
  const groups = new Map<string, { name: string; path: string }[]>();
  for (const path of paths) {
    const trimmed = path.replace(/\/+$/, '');
    const slash = trimmed.lastIndexOf('/');
    const folder = slash < 0 ? '.' : slash === 0 ? '/' : trimmed.slice(0, slash);
    const group = groups.get(folder) ?? [];
    group.push({ name: trimmed.slice(slash + 1), path });
    groups.set(folder, group);
  }
  return groups;
}
