import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

/** Rank of each folder or file of lib/; imports go to a lower rank or stay in their folder. */
const RANKS: Readonly<Record<string, number>> = {
  base: 0,
  config: 1,
  protocol: 1,
  shell: 1,
  nomad: 2,
  cluster: 3,
  environments: 3,
  runners: 4,
  execution: 5,
  api: 8,
  'service.ts': 9,
  cli: 10,
  'main.ts': 10,
  'index.ts': 10,
};

/** Folders beside the ranks, with all that they may import. */
const ISLANDS: Readonly<Record<string, readonly string[]>> = {
  'dev-agent': ['base', 'nomad/wire.js'],
};

const lib = path.resolve(import.meta.dirname, '../../lib');

function place(file: string): string {
  return path.relative(lib, file).split(path.sep)[0] ?? '';
}

function importsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8');
  return [...source.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
    path.resolve(path.dirname(file), match[1] ?? ''),
  );
}

function violation(file: string, target: string): string | undefined {
  const from = place(file);
  const to = place(target);
  if (from === to) return undefined;
  const told = `${path.relative(lib, file)} imports ${path.relative(lib, target)}`;
  const island = ISLANDS[from];
  if (island) {
    const allowed = island.some((name) => name === to || path.join(lib, name) === target);
    return allowed ? undefined : `${told}: not for ${from}`;
  }
  if (to in ISLANDS) return from === 'main.ts' || from === 'cli' ? undefined : `${told}: an island`;
  const fromRank = RANKS[from];
  const toRank = RANKS[to.replace(/\.js$/, '.ts')];
  if (fromRank === undefined || toRank === undefined) return `${told}: a place without a rank`;
  const isEntry = fromRank === 10 && toRank === 10;
  return toRank < fromRank || isEntry ? undefined : `${told}: rank ${fromRank} to rank ${toRank}`;
}

describe('import ranks', () => {
  const files = readdirSync(lib, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(lib, name));

  it('lets a file import from its own folder or a lower rank only', () => {
    const violations = files.flatMap((file) => importsOf(file).map((target) => violation(file, target)));
    expect(violations.filter((line) => line !== undefined)).to.deep.equal([]);
  });

  it('keeps index files to the public entries', () => {
    const allowed = ['index.ts', path.join('client', 'index.ts')];
    const found = files
      .filter((file) => path.basename(file) === 'index.ts')
      .map((f) => path.relative(lib, f));
    expect(found.filter((name) => !allowed.includes(name))).to.deep.equal([]);
  });
});
