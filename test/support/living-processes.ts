import { readdirSync, readFileSync } from 'node:fs';

/** Living processes with `mark` in their arguments. */
export function processesWith(mark: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      if (!/^\d+$/.test(name) || !readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(mark)) return [];
      const isZombie = readFileSync(`/proc/${name}/status`, 'latin1').includes('State:\tZ');
      return isZombie ? [] : [Number(name)];
    } catch {
      return []; // ended meanwhile
    }
  });
}
