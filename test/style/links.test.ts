import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

describe('documentation links', () => {
  const pages = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join('docs', name));

  for (const page of ['README.md', ...pages]) {
    it(`of ${page} lead somewhere`, () => {
      const targets = [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map((match) => match[1] ?? '');
      const dead = targets.filter((target) => !existsSync(path.join(root, path.dirname(page), target)));
      expect(dead).to.deep.equal([]);
    });
  }
});
