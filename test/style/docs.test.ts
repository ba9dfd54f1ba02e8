import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { ErrorCode } from '../../lib/base/errors.js';
import { ERRORS, errorSpec } from '../../lib/base/errors.js';
import { PROGRAM_SIGNALS } from '../../lib/base/program-signals.js';
import { anyMessage, anySessionMessage } from '../../lib/api/schemas/socket.js';
import { FAILURES } from '../../lib/api/openapi/failures.js';
import { documentConfig } from '../../lib/config/document.js';

function page(name: string): string {
  return readFileSync(path.resolve(import.meta.dirname, '../../docs', name), 'utf8');
}

describe('docs', () => {
  it('hold the configuration page that the schema gives (npm run docs writes it)', () => {
    expect(page('configuration.md')).to.equal(documentConfig());
  });

  it('list every error with its status, its code on the wire, whether trying again helps and what it means', () => {
    const documented = page('errors.md')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
      .map(([, ...cells]) => cells.slice(0, 5).join(' '));
    const actual = Object.keys(ERRORS).map((code) => {
      const { status, errorCode = '', retryable } = errorSpec(code as ErrorCode);
      const meaning = FAILURES[code as ErrorCode].meaning.replaceAll('`', '');
      return [code, String(status), errorCode, retryable ? 'yes' : 'no', meaning].join(' ');
    });
    expect(documented).to.have.members(actual);
  });

  it('tell of every message that a client may send, and of every signal', () => {
    const types = anyMessage.properties?.['type']?.['enum'] as readonly string[];
    for (const type of types) expect(page('websocket.md')).to.include(`| \`{"type":"${type}"`);
    const ofSession = anySessionMessage.properties?.['type']?.['enum'] as readonly string[];
    for (const type of ofSession) expect(page('websocket.md')).to.include(`| \`{"type":"${type}"`);
    for (const name of PROGRAM_SIGNALS) expect(page('websocket.md')).to.include(`\`${name}\``);
  });
});
