import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Processes whose command line holds `text`, zombies and this one left out. */
export function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      const state = readFileSync(`/proc/${name}/stat`, 'utf8');
      return !/\) Z /.test(state) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text);
    } catch {
      return false; // it ended while we looked
    }
  });
}

/** Folders that agents made for their state and their tasks. */
export function agentFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('serai-agent-'));
}
