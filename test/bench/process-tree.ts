/**
 * Processor time of everything below a process (Linux): what runs, and what ran and was waited for. Children of the
 * root count, the root itself does not. A process that ends is counted by whoever reaps it, so nothing is lost between
 * two readings.
 */
import { readdirSync, readFileSync } from 'node:fs';

interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly ownTicks: number;
  readonly reapedTicks: number;
}

const MS_PER_TICK = 10;

export function cpuMsBelow(root: number): number {
  const rows = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readRow(Number(name)))
    .filter((row) => row !== undefined);
  const children = new Map<number, Row[]>();
  for (const row of rows) children.set(row.parent, [...(children.get(row.parent) ?? []), row]);
  const sum = (pid: number): number =>
    (children.get(pid) ?? []).reduce(
      (total, row) => total + row.ownTicks + row.reapedTicks + sum(row.pid),
      0,
    );
  return (sum(root) + (rows.find(({ pid }) => pid === root)?.reapedTicks ?? 0)) * MS_PER_TICK;
}

function readRow(pid: number): Row | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined; // it has ended meanwhile
  }
  // The name of the program, in parentheses, may hold anything.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [, parent = 0] = fields;
  const [own = 0, ownSystem = 0, reaped = 0, reapedSystem = 0] = fields.slice(11, 15);
  return { pid, parent, ownTicks: own + ownSystem, reapedTicks: reaped + reapedSystem };
}
