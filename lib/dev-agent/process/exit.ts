import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

/** How a process ended: `signal` is 0 where none ended it, else `exitCode` is 128 + signal. */
export interface ProcessExit {
  readonly exitCode: number;
  readonly signal: number;
}

const SIGNALS: Readonly<Record<string, number>> = constants.signals;

/** Resolves when the process itself has ended, whatever becomes of its output. To be called before it can have. */
export function exitOf(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, name) => {
      const signal = name === null ? 0 : (SIGNALS[name] ?? 0);
      resolve({ exitCode: code ?? 128 + signal, signal });
    });
  });
}
