import { expect } from 'chai';
import { nomadClient } from '../support/nomad-client.js';
import { eventually } from '../support/waiting.js';
import { collect, ExecBench, OPTIONS } from './support/exec-bench.js';

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
  let bench: ExecBench;

  beforeEach(async () => {
    bench = await ExecBench.open();
  });

  afterEach(() => bench.close());

  it('asks for the command with the token in a header, and in the namespace and region', async () => {
    const [, exec] = await bench.exec({ tty: true });
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

  describe('output', () => {
    it('keeps what came before the handler was set', async () => {
      const [session, exec] = await bench.exec();
      await exec.output('stderr', 'early');
      await exec.exit(0);
      exec.close(1000);
      await session.end;
      expect(collect(session).stderr).to.equal('early');
    });

    it('stops reading where nobody takes the output, and loses nothing', async () => {
      const [session, exec] = await bench.exec();
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
        const [session, exec] = await bench.exec();
        await exec.send(frame);
        expect(await session.end, frame).to.include({ kind: 'closed', code: 1007 });
        await exec.closed();
      }
    });

    it('ends as closed when the handler fails, and throws nothing', async () => {
      const [session, exec] = await bench.exec();
      session.onOutput(() => {
        throw new Error('a bug of the reader');
      });
      await exec.output('stdout', 'x');
      await exec.exit(0);
      expect(await session.end).to.include({ kind: 'closed', code: 1007 });
    });

    it('survives bytes that are no WebSocket frame', async () => {
      const [session, exec] = await bench.exec();
      exec.writeRaw(Buffer.from([0xff, 0xff, 0xff, 0xff]));
      expect(await session.end).to.include({ kind: 'closed' });
    });
  });

  describe('input', () => {
    it('goes in frames of at most 32 KiB, in order, the end of input last', async () => {
      const [session, exec] = await bench.exec();
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
      const [session, exec] = await bench.exec();
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
      const [session, exec] = await bench.exec({ tty: true });
      session.resize(132, 50);
      await exec.until((frames) => frames.length === 1);
      expect(exec.received).to.deep.equal([{ tty_size: { height: 50, width: 132 } }]);
      const [plain, plainExec] = await bench.exec();
      plain.resize(132, 50);
      plain.closeStdin();
      await plainExec.until((frames) => frames.length === 1);
      expect(plainExec.received).to.deep.equal([{ stdin: { close: true } }]);
    });
  });

  it('sends an empty frame every ten seconds until the end [A2-41]', async () => {
    const [session, exec] = await bench.exec();
    await bench.clock.advance(700_000);
    await exec.until((frames) => frames.length === 70);
    expect(exec.received).to.deep.equal(Array.from({ length: 70 }, () => ({})));
    session.destroy();
    expect(bench.clock.armed).to.equal(0);
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
    await using logged = nomadClient(bench.nomad.address, { clock: bench.clock, log });
    const [session, exec] = await Promise.all([logged.openExec(OPTIONS), bench.nomad.nextExec()]);
    exec.close(1011, 'rpc error: Permission denied');
    expect(await session.end).to.deep.equal({
      kind: 'closed',
      code: 1011,
      reason: 'rpc error: Permission denied',
    });
    expect(errors).to.have.length(1);
  });

  it('leaves nothing behind after stop', async () => {
    const [session] = await bench.exec();
    session.pause();
    await bench.client.stop();
    expect(await session.end).to.include({ kind: 'closed' });
    expect(bench.clock.armed).to.equal(0);
    await eventually('all connections to be closed', () => bench.nomad.connections === 0);
    const error = await bench.client.openExec(OPTIONS).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'STOPPED' });
  });
});

function isStdinClose(frame: unknown): boolean {
  return JSON.stringify(frame) === '{"stdin":{"close":true}}';
}
