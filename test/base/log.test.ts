import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect } from 'chai';
import type { LogFormat } from '../../lib/base/log.js';

const LIB = path.resolve(import.meta.dirname, '../../lib/base');

/** What a program writes to standard error that logs with a level of info. */
function logged(format: LogFormat, script: string): string[] {
  const source = `
    import { createLogger } from '${LIB}/log.ts';
    import { ServiceError } from '${LIB}/errors.ts';
    const log = createLogger({ level: 'info', format: '${format}' });
    ${script}`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', source];
  const { stderr, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stdout).to.equal('');
  return stderr.split('\n').slice(0, -1);
}

describe('the logger', () => {
  it('writes a line of JSON for each message of its level or above, with all fields', () => {
    const lines = logged(
      'json',
      `const child = log.child({ a: 1, b: 'of the child' }).child({ c: 'x y' });
       child.debug('not written', { a: 2 });
       child.info('one %s', { b: 2, list: [1] });
       log.error('two', { error: new ServiceError('STOPPED', 'why', { details: { n: 1 }, cause: new Error('cause') }) });`,
    ).map((line) => JSON.parse(line) as Record<string, unknown>);
    const [first, second] = lines;
    expect(lines).to.have.length(2);
    expect(first?.['timestamp']).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(first).to.deep.include({ level: 'info', message: 'one %s', a: 1, b: 2, c: 'x y', list: [1] });
    expect(second?.['error']).to.deep.include({ message: 'why', code: 'STOPPED', details: { n: 1 } });
    expect(second?.['error']).to.have.nested.property('cause.message', 'cause');
    expect(second?.['error']).to.have.nested.property('cause.stack');
  });

  for (const format of ['json', 'text'] as const) {
    it(`writes a line of ${format} for what JSON cannot hold, too`, () => {
      const lines = logged(
        format,
        `const ring = {}; ring.ring = ring; log.warn('odd', { ring, big: 1n, nothing: undefined });`,
      );
      expect(lines).to.have.length(1);
      expect(lines[0])
        .to.contain('warn')
        .and.to.contain('odd')
        .and.to.contain('Circular')
        .and.to.contain('1n');
    });
  }
});
