import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import { fixture, RawAgent, sleeper } from './support/raw-agent.js';
import type { FrameJson } from './support/agent-json.js';
import type { RawExec } from './support/raw-agent.js';

/** What a frame adds to the streams, and the frames that end them. */
function told(frames: readonly FrameJson[]): { stdout: string; stderr: string; ends: FrameJson[] } {
  const text = (stream: 'stdout' | 'stderr'): string =>
    Buffer.concat(frames.map((frame) => Buffer.from(frame[stream]?.data ?? '', 'base64'))).toString('latin1');
  const ends = frames.filter((frame) => !frame.stdout?.data && !frame.stderr?.data);
  return { stdout: text('stdout'), stderr: text('stderr'), ends };
}

interface RecordedExec {
  readonly request: { readonly path: string };
  readonly frames: readonly {
    readonly recv?: FrameJson;
    readonly send?: unknown;
    readonly code?: number;
    readonly reason?: string;
  }[];
}

function received(recorded: RecordedExec): FrameJson[] {
  return recorded.frames.flatMap(({ recv }) => (recv === undefined ? [] : [recv]));
}

describe('exec of the embedded agent', () => {
  let raw: RawAgent;
  let allocationId: string;

  before(async () => {
    raw = await RawAgent.start();
    allocationId = await raw.run(sleeper('7-exec'));
  });
  after(() => raw.stop());

  /** Says what the recorded client said, each thing once everything recorded before it has arrived. */
  async function replay(recorded: RecordedExec): Promise<RawExec> {
    const path = recorded.request.path.replace(
      /allocation\/(14c2c654|a41e9b92)[^/]*/,
      `allocation/${allocationId}`,
    );
    const exec = raw.execPath(path);
    await exec.opened;
    const before: FrameJson[] = [];
    for (const entry of recorded.frames) {
      if (entry.recv !== undefined) before.push(entry.recv);
      if (entry.send === undefined) continue;
      const wanted = told(before).stdout.length;
      await eventually('the output before an input', () => told(exec.frames).stdout.length >= wanted);
      exec.send(entry.send);
    }
    return exec;
  }

  describe('gives what a real Nomad gave', () => {
    const untilClosed = [
      'bad-alloc-id',
      'binary-output',
      'command-not-found',
      'echo-stdin-closed',
      'empty-command',
      'killed-by-signal',
      'stderr-exit3-stdin-closed',
      'stdin-cat-close',
      'tty-cat-eof',
      'tty-echo-exit3',
      'unknown-alloc',
      'unknown-task',
    ];
    for (const name of untilClosed) {
      it(name, async () => {
        const recorded = fixture<RecordedExec>(`exec/${name}`);
        const exec = await replay(recorded);
        const { code, reason } = recorded.frames.at(-1) ?? {};
        expect(await exec.closed).to.deep.equal({ code, reason });
        expect(told(exec.frames)).to.deep.equal(told(received(recorded)));
      });
    }

    it('tty-ctrl-c', async () => {
      // A program that answers is there to be interrupted; dash loses a signal that comes while it starts one.
      const exec = raw.exec(allocationId, ['cat'], { tty: true });
      await exec.opened;
      exec.type('x\n');
      await exec.until('x\r\nx\r\n');
      exec.send({ stdin: { data: 'Aw==' } });
      expect(await exec.closed).to.deep.equal({ code: 1000, reason: '' });
      expect(exec.stdout).to.equal('x\r\nx\r\n^C');
      expect(exec.exitCode).to.equal(130);
    });

    it('tty-resize', async () => {
      const command = ['sh', '-c', 'echo ready; read a; stty size; read b; stty size'];
      const exec = raw.exec(allocationId, command, { tty: true });
      await exec.until('ready');
      exec.send({ tty_size: { height: 24, width: 80 } });
      exec.type('\n');
      await exec.until('24 80\r\n');
      exec.send({ tty_size: { height: 50, width: 132 } });
      exec.type('\n');
      await exec.closed;
      expect(exec.stdout).to.match(/24 80\r\n[^]*50 132\r\n/);
      expect(exec.exitCode).to.equal(0);
    });

    it('handshake: the first frame carries the token, and the command waits for it', async () => {
      const exec = raw.exec(allocationId, ['echo', 'hi'], { query: '&ws_handshake=true' });
      await exec.opened;
      await raw.output(allocationId, ['true']);
      expect(exec.frames).to.deep.equal([]);
      exec.send({ version: 1, auth_token: '' });
      await exec.until('hi\n');
      exec.send({ stdin: { close: true } });
      expect((await exec.closed).code).to.equal(1000);
    });

    it('bad-client-frame: nothing is read after it, and nothing is said', async () => {
      const exec = raw.exec(allocationId, ['cat']);
      await exec.opened;
      exec.send('not json');
      exec.type('lost');
      exec.send({ stdin: { close: true } });
      await raw.output(allocationId, ['true']);
      expect(exec.isClosed).to.equal(false);
      expect(exec.frames).to.deep.equal([]);
      exec.socket.terminate();
      await exec.closed;
    });

    it('output-2MB-stdin-closed: every byte, in frames of at most 4096', async () => {
      const command = ['sh', '-c', 'head -c 2000000 /dev/zero | tr "\\0" a'];
      const exec = await raw.output(allocationId, command);
      expect(exec.bytes('stdout').equals(Buffer.alloc(2_000_000, 'a'))).to.equal(true);
      const sizes = exec.frames.map((frame) => Buffer.from(frame.stdout?.data ?? '', 'base64').length);
      expect(Math.max(...sizes)).to.be.at.most(4096);
      expect(exec.exitCode).to.equal(0);
    });

    it('alloc-stopped-during-exec and exec-on-stopped-alloc', async () => {
      const id = await raw.run(sleeper('7-stopped'));
      const exec = raw.exec(id, ['sh', '-c', 'echo start; sleep 30; echo end']);
      await exec.until('start');
      await raw.request('DELETE', '/v1/job/7-stopped');
      expect(await exec.closed).to.deep.equal({ code: 1011, reason: 'plugin is shut down' });
      expect(exec.exitCode).to.equal(undefined);
      await raw.allocation('7-stopped', 'complete');
      const late = raw.exec(id, ['true']);
      expect(await late.closed).to.deep.equal({
        code: 1008,
        reason: 'task "default-task" is not running.',
      });
    });
  });

  it('tells an exit only after standard input was closed', async () => {
    const exec = raw.exec(allocationId, ['echo', 'hi']);
    await exec.until('hi\n');
    await raw.output(allocationId, ['true']);
    expect(exec.isClosed).to.equal(false);
    exec.send({ stdin: { close: true } });
    await exec.closed;
    expect(exec.exitCode).to.equal(0);
  });

  it('gives every exit code as it is', async () => {
    for (const code of [0, 1, 3, 124, 128, 255]) {
      const exec = await raw.output(allocationId, ['sh', '-c', `exit ${code}`]);
      expect(exec.exitCode).to.equal(code);
    }
  });

  it('ignores empty frames, which keep the connection alive', async () => {
    const exec = raw.exec(allocationId, ['cat']);
    await exec.opened;
    exec.send({});
    exec.type('a');
    exec.send({});
    exec.send({ stdin: { close: true } });
    await exec.closed;
    expect(exec.stdout).to.equal('a');
  });

  it('loses nothing of what a terminal shows just before its process ends', async () => {
    let lost = 0;
    const rounds = Array.from({ length: 4 }, async () => {
      for (let count = 0; count < 250; count += 1) {
        const exec = await raw.output(allocationId, ['echo', 'ok'], { tty: true });
        if (exec.stdout !== 'ok\r\n' || exec.exitCode !== 0) lost += 1;
      }
    });
    await Promise.all(rounds);
    expect(lost).to.equal(0);
  }).timeout(120_000);

  it('does not let a child that stays behind hold the end back', async () => {
    for (const tty of [false, true]) {
      const exec = await raw.output(allocationId, ['sh', '-c', 'nohup sleep 600 & echo done'], { tty });
      expect(exec.stdout).to.contain('done');
      expect(exec.exitCode).to.equal(0);
    }
  });

  it('keeps megabytes through a terminal whole while the client reads slowly', async () => {
    const exec = raw.exec(allocationId, ['sh', '-c', 'stty -opost; seq 1 200000'], { tty: true });
    await exec.opened;
    exec.socket.pause();
    await raw.output(allocationId, ['true']);
    exec.socket.resume();
    await exec.closed;
    const lines = exec.stdout.trimEnd().split('\n');
    expect([lines.length, lines.at(-1)]).to.deep.equal([200_000, '200000']);
  });

  it('passes input of megabytes on whole', async () => {
    const exec = raw.exec(allocationId, ['sh', '-c', 'sleep 0.2; wc -c']);
    await exec.opened;
    for (let count = 0; count < 64; count += 1) exec.type('x'.repeat(65_536));
    exec.send({ stdin: { close: true } });
    await exec.closed;
    expect(exec.stdout.trim()).to.equal(String(64 * 65_536));
  });

  it('goes on with everything else while a terminal is given input that nobody reads', async () => {
    const flooded = raw.exec(allocationId, ['sh', '-c', 'stty raw -echo; echo ready; sleep 600'], {
      tty: true,
    });
    await flooded.until('ready');
    for (let count = 0; count < 20; count += 1) flooded.type('line\n'.repeat(1000));
    expect((await raw.output(allocationId, ['echo', 'still here'])).stdout).to.equal('still here\n');
    flooded.socket.terminate();
    const read = raw.exec(
      allocationId,
      ['sh', '-c', 'stty raw -echo; echo ready; sleep 0.3; head -c 100000 | wc -c'],
      {
        tty: true,
      },
    );
    await read.until('ready');
    for (let count = 0; count < 20; count += 1) read.type('line\n'.repeat(1000));
    await read.closed;
    expect(read.stdout).to.contain('100000');
  });

  it('does not wait for input to be read by what a program left behind', async () => {
    const exec = raw.exec(allocationId, ['sh', '-c', 'exec 3<&0; sleep 600 & echo ready; read line; exit 3']);
    await exec.until('ready');
    exec.type('line\n');
    for (let count = 0; count < 64; count += 1) exec.type('x'.repeat(65_536));
    exec.send({ stdin: { close: true } });
    expect((await exec.closed).code).to.equal(1000);
    expect(exec.exitCode).to.equal(3);
  });

  it('lets a process live on whose client left', async () => {
    const exec = raw.exec(allocationId, ['sh', '-c', 'echo $$; sleep 1; echo > "$HOME/alive"; sleep 60']);
    await exec.until('\n');
    exec.socket.terminate();
    await eventually('the file of the process', async () => {
      const look = await raw.output(allocationId, ['sh', '-c', 'ls "$HOME"']);
      return look.stdout.includes('alive');
    });
  });
});
