import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import type { Figure } from './figures.js';
import { judge } from './limits.js';
import { parseOptions } from './options.js';

const bench = path.join(import.meta.dirname, 'bench.ts');
const FIGURES = [
  'latency',
  'session',
  'keystrokes',
  'output',
  'files',
  'session-load',
  'forks',
  'soak',
  'scale',
];

describe('npm run bench', () => {
  it('measures on every path, and says so in JSON', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'serai-bench-test-'));
    try {
      const file = path.join(folder, 'figures.json');
      const args = [...FIGURES, '--quick', '--pool', '1', '--json', file, '--'];
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', bench, ...args], {
        encoding: 'utf8',
      });
      expect(status, stderr).to.equal(0);
      expect(stdout)
        .to.match(/(sandbox|process) driver/)
        .and.to.contain('| next execute, exit |')
        .and.to.match(/claims at 20 a second, refused \| 0.00 \|/);
      const { figures } = JSON.parse(readFileSync(file, 'utf8')) as { figures: Figure[] };
      expect(figures.filter(({ samples }) => samples.some((each) => !Number.isFinite(each)))).to.deep.equal(
        [],
      );
      for (const party of ['warm', 'cold', 'floor']) {
        const names = figures.filter((figure) => figure.party === party).map(({ name }) => name);
        expect(names).to.include.members(['claim', 'next execute, first output', 'next execute, exit']);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }).timeout(180_000);

  it('tells which limits hold', () => {
    const figure = (name: string, party: Figure['party'], samples: number[]): Figure => ({
      name,
      party,
      samples,
      unit: 'ms',
    });
    const verdicts = judge([
      figure('list', 'warm', [9, 9.5, 30]),
      figure('keystroke echo', 'warm', [1, 2, 3]),
      figure('next execute, exit', 'warm', [8]),
      figure('next execute, exit', 'floor', [3.5]),
    ]);
    const answers = Object.fromEntries(verdicts.map(({ what, holds }) => [what, holds]));
    expect(answers['list']).to.equal(true);
    expect(answers['keystroke echo']).to.equal(false);
    expect(answers['next execute, exit, above the floor']).to.equal(true);
    expect(answers['download of 1 MB']).to.equal('not measured');
  });

  it('takes figures, options, and flags of the agent after --', () => {
    expect(parseOptions(['latency', 'check', '--pool', '3', '--', '--driver', 'process'])).to.deep.include({
      figures: ['latency'],
      check: true,
      pool: 3,
      agent: ['--driver', 'process'],
    });
    expect(parseOptions(['check']).figures).to.include.members(['latency', 'forks', 'soak', 'scale']);
    expect(parseOptions([]).figures).not.to.include('soak').and.not.to.include('scale');
    expect(() => parseOptions(['latencies'])).to.throw('there is no figure latencies');
    expect(() => parseOptions(['--pool', '0'])).to.throw('--pool');
  });
});
