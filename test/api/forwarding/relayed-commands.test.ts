import { expect } from 'chai';
import type { RelayedCommandsOptions } from '../../../lib/api/forwarding/relayed-commands.js';
import { RelayedCommands } from '../../../lib/api/forwarding/relayed-commands.js';
import { FakeClock } from '../../support/fake-clock.js';

describe('the commands of a relayed socket', () => {
  function commands(options: Partial<RelayedCommandsOptions> = {}): RelayedCommands {
    return new RelayedCommands({ kind: 'session', isSeraiV1: true, clock: new FakeClock(), ...options });
  }

  it('run from their start to their own end', () => {
    const session = commands();
    expect(session.end('lost')).to.equal(undefined);
    session.told('{"type":"start","id":"a"}');
    session.told('{"type":"error","data":"unknown command","id":"b"}');
    expect(session.isRunning).to.equal(true);
    session.told('{"type":"exit","data":0,"id":"a"}');
    expect(session.isRunning).to.equal(false);
  });

  it('end in the words of the protocol that the client chose', () => {
    const plain = commands({ kind: 'execution', isSeraiV1: false });
    expect(plain.end('lost')).to.equal('{"type":"error","data":"lost"}');
    const session = commands();
    session.told('{"type":"start","id":"a"}');
    expect(session.end('lost')).to.equal(
      '{"type":"error","data":"lost","durationMs":0,"oomKilled":false,"id":"a"}',
    );
  });

  it('are not ended by what is no message of a server', () => {
    const session = commands();
    session.told('{"type":"start","id":"a"}');
    for (const text of ['{"type":"exit"', '{"type":"exit"}', '{"type":"exit","id":1}', ''])
      session.told(text);
    expect(session.isRunning).to.equal(true);
  });
});
