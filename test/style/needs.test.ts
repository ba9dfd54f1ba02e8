import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { Need } from '../support/needs.js';
import { needs, program } from '../support/needs.js';

const tests = path.resolve(import.meta.dirname, '..');

describe('needs', () => {
  const ci = process.env['CI'];
  const print = console.log;
  afterEach(() => {
    console.log = print;
    if (ci === undefined) delete process.env['CI'];
    else process.env['CI'] = ci;
  });

  /** What comes of a test with this need. */
  function outcome(isCi: boolean, need: Need): unknown {
    process.env['CI'] = isCi ? 'true' : '';
    const lines: unknown[] = [];
    console.log = (line) => lines.push(line);
    const context: Pick<Mocha.Context, 'skip'> = {
      skip: () => {
        throw new Error('skipped');
      },
    };
    try {
      needs(context, need);
      return 'run';
    } catch (error) {
      return [(error as Error).message, ...lines];
    }
  }

  it('skip with a line that names the package, and fail in CI', () => {
    const missing = program('no-such-tool', 'its-package');
    const name = 'no-such-tool: apt-get install its-package';
    expect(outcome(false, missing)).to.deep.equal(['skipped', `      skipped: needs ${name}`]);
    expect(outcome(true, missing)).to.deep.equal([`this machine lacks ${name}`]);
    expect(outcome(true, program('sh'))).to.equal('run');
  });

  it('skip in CI too where nothing that is installed helps', () => {
    const forbidden = { isMet: false, missing: 'a kind kernel', isForbidden: true };
    expect(outcome(true, forbidden)).to.deep.equal(['skipped', '      skipped: needs a kind kernel']);
  });

  it('are the only way for a test to be left out', () => {
    const silent = readdirSync(tests, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/^(support|style).needs/.test(name))
      .filter((name) => /\.skip\b/.test(readFileSync(path.join(tests, name), 'utf8')));
    expect(silent).to.deep.equal([]);
  });
});
