import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { documentConfig } from '../../lib/config/document.js';

const docs = path.resolve(import.meta.dirname, '../../docs');

describe('docs', () => {
  it('hold the configuration page that the schema gives (npm run docs writes it)', () => {
    expect(readFileSync(path.join(docs, 'configuration.md'), 'utf8')).to.equal(documentConfig());
  });
});
