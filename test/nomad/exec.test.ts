import { expect } from 'chai';
import { allocationId } from '../../lib/base/ids.js';
import { ServiceError } from '../../lib/base/errors.js';
import type { ExecOptions, ExecSession } from '../../lib/nomad/api.js';
import type { NomadClient } from '../../lib/nomad/client.js';
import { FakeClock } from '../support/fake-clock.js';
import { nomadClient } from '../support/nomad-client.js';
import type { ScriptedExec } from '../support/scripted-exec.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { eventually, gate } from '../support/waiting.js';

const OPTIONS: ExecOptions = {
  allocationId: allocationId('14c2c654-83c6-7954-2a6f-0407b0cffbbd'),
  task: 'default-task',
  command: ['sh', '-c', 'echo "ü & =?"'],
  tty: false,
};

/** Collects the output of one stream. */
function collect(session: ExecSession): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' };
  session.onOutput((stream, chunk) => {
    output[stream] += chunk.toString('latin1');
  });
  return output;
}

/** Waits until a count has risen and then stayed the same for a while. */
async function steady(count: () => number): Promise<void> {
  let [last, same] = [0, 0];
  await eventually('the flow to stop', () => {
    same = count() === last && last > 0 ? same + 1 : 0;
    last = count();
    return same >= 10;
  });
}

describe('NomadClient.openExec', () => {
  let nomad: ScriptedNomad;
  let clock: FakeClock;
  let client: NomadClient;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    clock = new FakeClock();
    client = nomadClient(nomad.address, { clock, token: 'a-token', namespace: 'runners', region: 'eu' });
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  async function open(options: Partial<ExecOptions> = {}): Promise<[ExecSession, ScriptedExec]> {
    return await Promise.all([client.openExec({ ...OPTIONS, ...options }), nomad.nextExec()]);
  }

  it('asks for the command with the token in a header, and in the namespace and region', async () => {
    const [, exec] = await open({ tty: true });
    const { query, headers, path } = exec.request;
    expect(path).to.equal(`/v1/client/allocation/${OPTIONS.allocationId}/exec`);
    expect(exec.command).to.deep.equal(OPTIONS.command);
    expect(Object.fromEntries(query)).to.include({
      task: 'default-task',
      tty: 'true',
      namespace: 'runners',
      region: 'eu',
    });
    expect(headers['x-nomad-token']).to.equal('a-token');
    expect(headers['sec-websocket-extensions']).to.equal(undefined);
  });

  describe('the end of a command', () => {
    it('delivers output that comes after the exit frame [A2-38]', async () => {
      const [session, exec] = await open();
      const output = collect(session);
      await exec.output('stdout', 'a');
      await exec.exit(0);
      await exec.output('stdout', 'b');
      await exec.output('stdout', 'c');
      exec.close(1000);
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
      expect(output.stdout).to.equal('abc');
    });

    it('gives late output a second after the last of it, then drops the socket [A2-38]', async () => {
      const [session, exec] = await open();
      const output = collect(session);
      await exec.exit(3);
      for (const late of ['a', 'b', 'c']) {
        await exec.output('stdout', late);
        await eventually('the late output', () => output.stdout.endsWith(late));
        await clock.advance(999);
      }
      expect(output.stdout).to.equal('abc');
      await clock.advance(1);
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 3 });
      await exec.closed();
    });

    it('does not give late output up while the reader holds it back [A2-38]', async () => {
      const [session, exec] = await open();
      let bytes = 0;
      session.onOutput((_stream, chunk) => {
        bytes += chunk.length;
        if (bytes === 1) session.pause();
      });
      await exec.exit(0);
      await exec.output('stdout', 'x');
      await eventually('the first byte', () => bytes === 1);
      await exec.output('stdout', 'y'.repeat(1000));
      await clock.advance(60_000);
      session.resume();
      exec.close(1000);
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
      expect(bytes).to.equal(1001);
    });

    for (const [how, drop] of [
      ['a close', (exec: ScriptedExec) => exec.close(1000)],
      ['a reset', (exec: ScriptedExec) => exec.reset()],
      ['an end without a close', (exec: ScriptedExec) => exec.hangUp()],
      ['a close that says failure', (exec: ScriptedExec) => exec.close(1011, 'late failure')],
    ] as const) {
      it(`keeps the exit where ${how} follows it [A2-39]`, async () => {
        const [session, exec] = await open();
        const output = collect(session);
        await exec.output('stdout', 'all');
        await exec.exit(0);
        await exec.output('stdout', '.'); // once this is there, so is the exit: a reset takes back what was not read
        await eventually('the output', () => output.stdout === 'all.');
        drop(exec);
        expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
      });
    }

    for (const [how, drop, code] of [
      ['1000', (exec: ScriptedExec) => exec.close(1000), 1000],
      ['1011 and a reason', (exec: ScriptedExec) => exec.close(1011, 'plugin is shut down'), 1011],
      ['a reset', (exec: ScriptedExec) => exec.reset(), 1006],
      ['an end without a close', (exec: ScriptedExec) => exec.hangUp(), 1006],
    ] as const) {
      it(`is no exit where the socket ends with ${how} and no exit frame [A2-40]`, async () => {
        const [session, exec] = await open();
        const output = collect(session);
        await exec.output('stdout', 'part');
        await eventually('the output', () => output.stdout === 'part');
        drop(exec);
        expect(await session.end).to.include({ kind: 'closed', code });
      });
    }

    it('takes the first of several exits, and only one with a result', async () => {
      const [session, exec] = await open();
      await exec.send({ exited: true });
      await exec.exit(7);
      await exec.exit(8);
      exec.close(1000);
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 7 });
    });

    it('settles once, with nothing thrown, in every order of exit, close and destroy [A2-63]', async () => {
      const steps = {
        exit: (exec: ScriptedExec) => void exec.exit(0),
        close: (exec: ScriptedExec) => exec.close(1000),
        reset: (exec: ScriptedExec) => exec.reset(),
        destroy: (_exec: ScriptedExec, session: ExecSession) => session.destroy(),
      };
      for (const first of Object.values(steps)) {
        for (const second of Object.values(steps)) {
          const [session, exec] = await open();
          const ends: unknown[] = [];
          void session.end.then((end) => ends.push(end));
          first(exec, session);
          second(exec, session);
          session.destroy();
          session.destroy();
          await session.end;
          await session.write(Buffer.from('x'));
          session.closeStdin();
          session.resize(1, 1);
          session.pause();
          session.resume();
          await exec.closed();
          expect(ends).to.have.length(1);
        }
      }
    });
  });

  describe('output', () => {
    it('keeps what came before the handler was set', async () => {
      const [session, exec] = await open();
      await exec.output('stderr', 'early');
      await exec.exit(0);
      exec.close(1000);
      await session.end;
      expect(collect(session).stderr).to.equal('early');
    });

    it('stops reading where nobody takes the output, and loses nothing', async () => {
      const [session, exec] = await open();
      const sent: Promise<void>[] = [];
      for (let frame = 0; frame < 512; frame += 1) sent.push(exec.output('stdout', 'x'.repeat(64 * 1024)));
      let taken = 0;
      for (const each of sent) void each.then(() => (taken += 1));
      await steady(() => taken);
      expect(taken).to.be.below(512);
      let bytes = 0;
      session.onOutput((_stream, chunk) => {
        bytes += chunk.length;
      });
      await Promise.all(sent);
      await exec.exit(0);
      exec.close(1000);
      await session.end;
      expect(bytes).to.equal(512 * 64 * 1024);
    });

    it('ends as closed on a frame that cannot be read', async () => {
      for (const frame of [
        'no json',
        '[]',
        '{"stdout":{"data":"%%%%"}}',
        '{"stdout":{"data":7}}',
        '{"exited":true,"result":{"exit_code":"0"}}',
      ]) {
        const [session, exec] = await open();
        await exec.send(frame);
        expect(await session.end, frame).to.include({ kind: 'closed', code: 1007 });
        await exec.closed();
      }
    });

    it('ends as closed when the handler fails, and throws nothing', async () => {
      const [session, exec] = await open();
      session.onOutput(() => {
        throw new Error('a bug of the reader');
      });
      await exec.output('stdout', 'x');
      await exec.exit(0);
      expect(await session.end).to.include({ kind: 'closed', code: 1007 });
    });

    it('survives bytes that are no WebSocket frame', async () => {
      const [session, exec] = await open();
      exec.writeRaw(Buffer.from([0xff, 0xff, 0xff, 0xff]));
      expect(await session.end).to.include({ kind: 'closed' });
    });
  });

  describe('input', () => {
    it('goes in frames of at most 32 KiB, in order, the end of input last', async () => {
      const [session, exec] = await open();
      const big = Buffer.alloc(100_000, 'abcdefg');
      void session.write(big);
      void session.write(Buffer.from('tail'));
      session.closeStdin();
      session.closeStdin();
      await session.write(Buffer.from('too late'));
      await exec.until((frames) => frames.some((frame) => isStdinClose(frame)));
      expect(exec.stdin.equals(Buffer.concat([big, Buffer.from('tail')]))).to.equal(true);
      expect(exec.received.filter(isStdinClose)).to.have.length(1);
      expect(exec.received.at(-1)).to.deep.equal({ stdin: { close: true } });
      expect(exec.received).to.have.length(6);
    });

    it('holds the writer back while Nomad does not read, and lets it go when the socket is gone', async () => {
      const [session, exec] = await open();
      exec.pause();
      let written = 0;
      const writing = (async () => {
        for (let chunk = 0; chunk < 200; chunk += 1) {
          await session.write(Buffer.alloc(256 * 1024));
          written += 1;
        }
      })();
      await steady(() => written);
      expect(written).to.be.below(200);
      session.destroy();
      await writing;
    });

    it('sends the size of the terminal with a TTY only', async () => {
      const [session, exec] = await open({ tty: true });
      session.resize(132, 50);
      await exec.until((frames) => frames.length === 1);
      expect(exec.received).to.deep.equal([{ tty_size: { height: 50, width: 132 } }]);
      const [plain, plainExec] = await open();
      plain.resize(132, 50);
      plain.closeStdin();
      await plainExec.until((frames) => frames.length === 1);
      expect(plainExec.received).to.deep.equal([{ stdin: { close: true } }]);
    });
  });

  it('sends an empty frame every ten seconds until the end [A2-41]', async () => {
    const [session, exec] = await open();
    await clock.advance(700_000);
    await exec.until((frames) => frames.length === 70);
    expect(exec.received).to.deep.equal(Array.from({ length: 70 }, () => ({})));
    session.destroy();
    expect(clock.armed).to.equal(0);
  });

  describe('opening', () => {
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
        nomad.on('GET', EXEC, reply({ status, body }));
        const error = await client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(ServiceError).and.to.include({ code });
      });
    }

    it('rejects with NOMAD_UNREACHABLE where the connection is reset, and does not try again', async () => {
      nomad.on('GET', EXEC, (call) => call.reset());
      const error = await client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'NOMAD_UNREACHABLE' });
      expect(nomad.requests).to.have.length(1);
    });

    it('has a time limit', async () => {
      const asked = gate();
      nomad.on('GET', EXEC, () => asked.open());
      const opening = client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
      await asked.promise;
      await clock.advance(10_000);
      expect(await opening).to.include({ code: 'NOMAD_UNREACHABLE' });
    });

    it('ends with the reason of the caller, which does not end an open session', async () => {
      const asked = gate();
      nomad.once('GET', EXEC, () => asked.open());
      const controller = new AbortController();
      const opening = client.openExec({ ...OPTIONS, signal: controller.signal }).catch((e: unknown) => e);
      await asked.promise;
      const reason = new ServiceError('RUNNER_GONE', 'gone');
      controller.abort(reason);
      expect(await opening).to.equal(reason);

      const later = new AbortController();
      const [session, exec] = await open({ signal: later.signal });
      later.abort(reason);
      await exec.exit(0);
      exec.close();
      expect(await session.end).to.deep.equal({ kind: 'exited', exitCode: 0 });
    });

    it('goes to the next address where nothing listens', async () => {
      const dead = await ScriptedNomad.start();
      const { address } = dead;
      await dead.stop();
      await using both = nomadClient([address, nomad.address], { clock });
      const [session, exec] = await Promise.all([both.openExec(OPTIONS), nomad.nextExec()]);
      await exec.exit(0);
      exec.close();
      expect(await session.end).to.include({ kind: 'exited' });
    });

    it('waits for one of the connections that Nomad allows, which open sockets do not count among [A2-67]', async () => {
      await using narrow = nomadClient(nomad.address, { clock, maxConnections: 2 });
      const held = gate();
      const [first, second] = [gate(), gate()];
      nomad.on('GET', EXEC, async (call) => {
        (call.request.query.get('task') === 'first' ? first : second).open();
        await held.promise;
        call.reply({ status: 403 });
      });
      const refused = ['first', 'second'].map((task) =>
        narrow.openExec({ ...OPTIONS, task }).catch((error: unknown) => error),
      );
      await Promise.all([first.promise, second.promise]);
      const waiting = narrow.leader().catch((error: unknown) => error);
      await clock.advance(0);
      expect(nomad.requests).to.have.length(2);
      await clock.advance(9_999);
      nomad.on('GET', '/v1/status/leader', reply({ body: '"127.0.0.1:4647"' }));
      held.open();
      expect(await waiting).to.equal('127.0.0.1:4647');
      await Promise.all(refused);
    });

    it('rejects with NOMAD_OVERLOADED where no connection is given back in time [A2-67]', async () => {
      await using narrow = nomadClient(nomad.address, { clock, maxConnections: 1, requestTimeout: 10 });
      const controller = new AbortController();
      narrow.events.subscribe({ topics: ['Job'], signal: controller.signal });
      await nomad.nextStream();
      const waiting = narrow.openExec(OPTIONS).catch((error: unknown) => error);
      await clock.advance(10_000);
      expect(await waiting).to.include({ code: 'NOMAD_OVERLOADED' });
      controller.abort(new ServiceError('STOPPED', 'over'));
    });
  });

  it('is told apart as a fault of the credentials where Nomad denies it [A2-66]', async () => {
    const errors: unknown[] = [];
    const log = {
      debug() {},
      info() {},
      warn() {},
      error: (message: string) => errors.push(message),
      child: () => log,
    };
    await using logged = nomadClient(nomad.address, { clock, log });
    const [session, exec] = await Promise.all([logged.openExec(OPTIONS), nomad.nextExec()]);
    exec.close(1011, 'rpc error: Permission denied');
    expect(await session.end).to.deep.equal({
      kind: 'closed',
      code: 1011,
      reason: 'rpc error: Permission denied',
    });
    expect(errors).to.have.length(1);
  });

  it('leaves nothing behind after stop', async () => {
    const [session] = await open();
    session.pause();
    await client.stop();
    expect(await session.end).to.include({ kind: 'closed' });
    expect(clock.armed).to.equal(0);
    await eventually('all connections to be closed', () => nomad.connections === 0);
    const error = await client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'STOPPED' });
  });
});

function isStdinClose(frame: unknown): boolean {
  return JSON.stringify(frame) === '{"stdin":{"close":true}}';
}
