import { expect } from 'chai';
import {
  endMarker,
  END_FORMAT,
  parseControlLine,
  startMarker,
  START_FORMAT,
} from '../../lib/shell/frames.js';
import { eachShell, runShell } from '../support/shells.js';

describe('frames', () => {
  eachShell((shell) => {
    it(`are printed by ${shell[0]} as the service looks for them`, () => {
      expect(runShell(shell, `printf ${START_FORMAT} 0012`)).to.equal(startMarker('0012').toString());
      expect(runShell(shell, `printf ${END_FORMAT} 0012`)).to.equal(endMarker('0012').toString());
    });
  });
});

describe('parseControlLine', () => {
  it('reads every line that the scripts write', () => {
    expect(parseControlLine('R 12 0 34816')).to.deep.equal({
      kind: 'ready',
      process: { pid: 12, session: 0, terminal: 34816 },
    });
    expect(parseControlLine('U 007 su user 1000 100 /home/with blank')).to.deep.equal({
      kind: 'user',
      token: '007',
      user: { tool: 'su', name: 'user', uid: '1000', gid: '100', home: '/home/with blank' },
    });
    expect(parseControlLine('U 007 none - 5 5 ')).to.deep.include({ kind: 'user' });
    expect(parseControlLine('S 007')).to.deep.equal({ kind: 'started', token: '007' });
    expect(parseControlLine('X 007 255')).to.deep.equal({ kind: 'exited', token: '007', exitCode: 255 });
    expect(parseControlLine('E - folder')).to.deep.equal({ kind: 'refused', token: '-', refusal: 'folder' });
  });

  it('takes nothing else for one', () => {
    for (const line of ['', 'X 007', 'X abc 1', 'X 007 1 ', 'E 007 nonsense', 'S 007 x', 'sh: not found']) {
      expect(parseControlLine(line), line).to.equal(undefined);
    }
  });
});
