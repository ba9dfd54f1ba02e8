import { readdir, readFile } from 'node:fs/promises';

/**
 * Who belongs to a task, as `/proc` tells it: whoever has the task's mark in its environment, whoever is in a session
 * that the task began, and all descendants of these.
 *
 * A process that cleared its environment, began a session of its own *and* lost its parents is not found. On machines
 * without `/proc` nothing is found; process groups have to do there.
 */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly environment: string;
}

/** The variable that marks the processes of a task. */
export const MARK_VARIABLE = 'DEV_AGENT_TASK';

export class ProcessTable {
  #next: Promise<ProcessEntry[]> | undefined;
  #current: Promise<unknown> = Promise.resolve();

  /** A list that was begun after the call; callers at one time share it. */
  list(): Promise<ProcessEntry[]> {
    this.#next ??= this.#after(this.#current);
    return this.#next;
  }

  /** Processes of the task with this mark and these sessions, zombies left out. */
  async membersOf(mark: string, sessions: ReadonlySet<number>): Promise<number[]> {
    return members(await this.list(), mark, sessions);
  }

  async #after(current: Promise<unknown>): Promise<ProcessEntry[]> {
    await current;
    const list = readTable();
    this.#current = list;
    this.#next = undefined;
    return list;
  }
}

/** The rule, without the reading. */
export function members(
  table: readonly ProcessEntry[],
  mark: string,
  sessions: ReadonlySet<number>,
): number[] {
  const entry = `${MARK_VARIABLE}=${mark}`;
  const found = new Set<number>();
  const children = new Map<number, number[]>();
  for (const { pid, parent, session, environment } of table) {
    children.set(parent, [...(children.get(parent) ?? []), pid]);
    if (sessions.has(session) || environment.split('\0').includes(entry)) found.add(pid);
  }
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child);
  return [...found];
}

async function readTable(): Promise<ProcessEntry[]> {
  const names = await readdir('/proc').catch(() => []); // no /proc: nothing can be told
  const entries = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map(readEntry));
  return entries.filter((entry) => entry !== undefined);
}

async function readEntry(name: string): Promise<ProcessEntry | undefined> {
  try {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8');
    // The name in brackets may hold anything, brackets too; the fields after it do not.
    const [state, parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return undefined;
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => ''); // another user's
    return { pid: Number(name), parent: Number(parent), session: Number(session), environment };
  } catch {
    return undefined; // it ended while we looked
  }
}
