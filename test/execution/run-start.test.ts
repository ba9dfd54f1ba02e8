import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { settle } from '../support/fake-clock.js';
import type { Stage } from './support/stage.js';
import { openStage } from './support/stage.js';

describe('Run that does not start', () => {
  let stage: Stage;

  beforeEach(async () => {
    stage = await openStage();
  });

  afterEach(() => stage.close());

  it('ends after 15 s, whether Nomad or the runner is silent', async () => {
    const held = stage.nomad.hold();
    const silent = await stage.start();
    await stage.clock.advance(15_000);
    expect(await silent.run.exit).to.deep.equal({
      kind: 'failed',
      message: 'the runner did not start the command in time',
    });
    stage.nomad.opening = undefined;
    held.open();
    const { run } = await stage.start({ interactive: false });
    await stage.clock.advance(15_000);
    expect(await run.exit).to.deep.include({ kind: 'failed' });
  });

  it('tells a failure of Nomad by a sentence of its own [A2-50]', async () => {
    stage.nomad.failure = new ServiceError('NOMAD_REJECTED', 'secret text of Nomad');
    const { run, sink } = await stage.start();
    expect(await run.exit).to.deep.equal({
      kind: 'failed',
      message: 'the command could not be started in the runner',
    });
    expect(sink.events).to.deep.equal([]);
  });

  it('ends in order what was being opened when the client left [A2-50]', async () => {
    const held = stage.nomad.hold();
    const { run } = await stage.start();
    run.hangUp();
    expect(await run.exit).to.deep.equal({ kind: 'hang-up' });
    held.open();
    await settle();
    expect(stage.nomad.execs.map(({ inputClosed }) => inputClosed)).to.include(true);
    await stage.clock.advance(1000);
    expect(stage.nomad.execs.map(({ destroyed }) => destroyed)).to.deep.equal([true, true]);
    expect(stage.nomad.kills).to.deep.equal([]);
  });

  it('drops the other exec where one cannot be opened', async () => {
    let calls = 0;
    const open = stage.nomad.openExec.bind(stage.nomad);
    stage.nomad.openExec = (options) => {
      calls += 1;
      if (calls === 2) return Promise.reject(new ServiceError('NOMAD_OVERLOADED', 'no'));
      return open(options);
    };
    const { run } = await stage.start();
    await stage.clock.advance(1000);
    expect(await run.exit).to.deep.equal({ kind: 'failed', message: 'Nomad is overloaded, try again' });
    expect(stage.nomad.execs.map(({ destroyed }) => destroyed)).to.deep.equal([true]);
  });

  it('names an image that cannot drop privileges, and reports the environment [A4-87]', async () => {
    const { run } = await stage.start({ interactive: false });
    await stage.nomad.pipe().say('stdout', `R 1 1 0\nE ${stage.nomad.pipe().token} no-drop\n`);
    const exit = await run.exit;
    expect(exit).to.deep.equal({ kind: 'failed', message: stage.unfit[0] });
    expect(stage.unfit[0]).to.include('setpriv');
  });
});
