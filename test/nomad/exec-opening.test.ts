import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { nomadClient } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { gate } from '../support/waiting.js';
import { ExecBench, OPTIONS } from './support/exec-bench.js';

describe('opening NomadClient.openExec', () => {
  let bench: ExecBench;

  beforeEach(async () => {
    bench = await ExecBench.open();
  });

  afterEach(() => bench.close());

  const EXEC = /exec$/;

  for (const [status, body, code] of [
    [403, 'Permission denied', 'NOMAD_REFUSED'],
    [429, 'too many connections', 'NOMAD_OVERLOADED'],
    [500, 'No cluster leader', 'NOMAD_OVERLOADED'],
    [404, '', 'NOMAD_NOT_FOUND'],
    [502, 'bad gateway', 'NOMAD_UNREACHABLE'],
    [200, 'hello', 'NOMAD_PROTOCOL'],
  ] as const) {
    it(`rejects with ${code} where the upgrade is answered with ${status} "${body}"`, async () => {
      bench.nomad.on('GET', EXEC, reply({ status, body }));
      const error = await bench.client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(ServiceError).and.to.include({ code });
    });
  }

  it('rejects with NOMAD_UNREACHABLE where the connection is reset, and does not try again', async () => {
    bench.nomad.on('GET', EXEC, (call) => call.reset());
    const error = await bench.client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'NOMAD_UNREACHABLE' });
    expect(bench.nomad.requests).to.have.length(1);
  });

  it('has a time limit', async () => {
    const asked = gate();
    bench.nomad.on('GET', EXEC, () => asked.open());
    const opening = bench.client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
    await asked.promise;
    await bench.clock.advance(10_000);
    expect(await opening).to.include({ code: 'NOMAD_UNREACHABLE' });
  });

  it('ends with the reason of the caller, which does not end an open session', async () => {
    const asked = gate();
    bench.nomad.once('GET', EXEC, () => asked.open());
    const controller = new AbortController();
    const opening = bench.client.openExec({ ...OPTIONS, signal: controller.signal }).catch((e: unknown) => e);
    await asked.promise;
    const reason = new ServiceError('RUNNER_GONE', 'gone');
    controller.abort(reason);
    expect(await opening).to.equal(reason);

    const later = new AbortController();
    const [session, exec] = await bench.exec({ signal: later.signal });
    later.abort(reason);
    await exec.exit(0);
    exec.close();
    expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
  });

  it('goes to the next address where nothing listens', async () => {
    const dead = await ScriptedNomad.start();
    const { address } = dead;
    await dead.stop();
    await using both = nomadClient([address, bench.nomad.address], { clock: bench.clock });
    const [session, exec] = await Promise.all([both.openExec(OPTIONS), bench.nomad.nextExec()]);
    await exec.exit(0);
    exec.close();
    expect(await session.end).to.include({ kind: 'exited' });
  });

  it('waits for one of the connections that Nomad allows, which open sockets do not count among [A2-67]', async () => {
    await using narrow = nomadClient(bench.nomad.address, { clock: bench.clock, maxConnections: 2 });
    const held = gate();
    const [first, second] = [gate(), gate()];
    bench.nomad.on('GET', EXEC, async (call) => {
      (call.request.query.get('task') === 'first' ? first : second).open();
      await held.promise;
      call.reply({ status: 403 });
    });
    const refused = ['first', 'second'].map((task) =>
      narrow.openExec({ ...OPTIONS, task }).catch((error: unknown) => error),
    );
    await Promise.all([first.promise, second.promise]);
    const waiting = narrow.leader().catch((error: unknown) => error);
    await bench.clock.advance(0);
    expect(bench.nomad.requests).to.have.length(2);
    await bench.clock.advance(9_999);
    bench.nomad.on('GET', '/v1/status/leader', reply({ body: '"127.0.0.1:4647"' }));
    held.open();
    expect(await waiting).to.equal('127.0.0.1:4647');
    await Promise.all(refused);
  });

  it('rejects with NOMAD_OVERLOADED where no connection is given back in time [A2-67]', async () => {
    await using narrow = nomadClient(bench.nomad.address, {
      clock: bench.clock,
      maxConnections: 1,
      requestTimeout: 10,
    });
    const controller = new AbortController();
    narrow.events.subscribe({ topics: ['Job'], signal: controller.signal });
    await bench.nomad.nextStream();
    const waiting = narrow.openExec(OPTIONS).catch((error: unknown) => error);
    await bench.clock.advance(10_000);
    expect(await waiting).to.include({ code: 'NOMAD_OVERLOADED' });
    controller.abort(new ServiceError('STOPPED', 'over'));
  });
});
