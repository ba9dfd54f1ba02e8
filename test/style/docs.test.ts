import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { ErrorCode } from '../../lib/base/errors.js';
import { ERRORS, errorSpec } from '../../lib/base/errors.js';
import { documentConfig } from '../../lib/config/document.js';

function page(name: string): string {
  return readFileSync(path.resolve(import.meta.dirname, '../../docs', name), 'utf8');
}

describe('docs', () => {
  it('hold the configuration page that the schema gives (npm run docs writes it)', () => {
    expect(page('configuration.md')).to.equal(documentConfig());
  });

  it('list every error with its status, its code on the wire and whether trying again helps', () => {
    const documented = page('errors.md')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
      .map(([, code, status, errorCode, again]) => [code, status, errorCode, again].join(' '));
    const actual = Object.keys(ERRORS).map((code) => {
      const { status, errorCode = '', retryable } = errorSpec(code as ErrorCode);
      return [code, String(status), errorCode, retryable ? 'yes' : 'no'].join(' ');
    });
    expect(documented).to.have.members(actual);
  });
});
