import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

const root = path.resolve(import.meta.dirname, '../..');

describe('docs/faults.md', () => {
  it('has a row for each mark of a test, and a test for each row', () => {
    const rows = [
      ...readFileSync(path.join(root, 'docs/faults.md'), 'utf8').matchAll(/^\| ((?:A\d-|B)\d+) \|/gm),
    ];
    const sources = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(path.join(root, 'test', name), 'utf8'));
    const marks = sources.flatMap((source) =>
      [...source.matchAll(/\[((?:A\d-|B)\d+(?:, (?:A\d-|B)\d+)*)\]/g)].flatMap((match) =>
        (match[1] ?? '').split(', '),
      ),
    );
    expect(rows.map((row) => row[1])).to.have.members([...new Set(marks)]);
  });
});
