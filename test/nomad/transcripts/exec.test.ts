import { expect } from 'chai';
import { allocationId } from '../../../lib/base/ids.js';
import type { ExecSession } from '../../../lib/nomad/api.js';
import type { NomadClient } from '../../../lib/nomad/client.js';
import type { ExecEnd } from '../../../lib/nomad/model.js';
import { nomadClient } from '../../support/nomad-client.js';
import type { ScriptedExec } from '../../support/scripted-exec.js';
import { ScriptedNomad } from '../../support/scripted-nomad.js';
import { eventually } from '../../support/waiting.js';
import type { ExecStep } from './transcripts.js';
import { execTranscript, transcriptNames } from './transcripts.js';

interface Frame {
  readonly stdin?: { readonly data?: string; readonly close?: boolean };
  readonly tty_size?: { readonly height: number; readonly width: number };
  readonly stdout?: { readonly data?: string };
  readonly stderr?: { readonly data?: string };
  readonly exited?: boolean;
  readonly result?: { readonly exit_code?: number };
}

const NAMES = transcriptNames('exec');

describe('transcripts of exec', () => {
  let nomad: ScriptedNomad;
  let client: NomadClient;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    client = nomadClient(nomad.address);
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  it('are there', () => {
    expect(NAMES.length).to.be.above(30);
  });

  for (const name of NAMES) {
    it(`are understood: ${name}`, async () => {
      const { request, frames } = execTranscript(name);
      const query = new URL(request.path ?? '/', 'http://nomad').searchParams;
      const command = JSON.parse(query.get('command') ?? '["true"]') as string[];
      const tty = query.get('tty') === 'true';
      const [session, exec] = await Promise.all([
        client.openExec({
          allocationId: allocationId(request.path?.split('/')[4] ?? 'ae9ccceb'),
          task: query.get('task') ?? 'default-task',
          command,
          tty,
        }),
        nomad.nextExec(),
      ]);
      if (request.path !== undefined) {
        expect(exec.request.path).to.equal(new URL(request.path, 'http://nomad').pathname);
        for (const key of ['command', 'task', 'tty']) {
          expect(exec.request.query.get(key)).to.equal(query.get(key));
        }
      }
      const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
      session.onOutput((stream, chunk) => output[stream].push(chunk));

      const expected = { stdout: bytesOf(frames, 'stdout'), stderr: bytesOf(frames, 'stderr') };
      for (const step of frames) {
        if (isLoss(step)) {
          // What the other side had not read when it left would be lost for both.
          const all = expected.stdout.length + expected.stderr.length;
          await eventually(
            'all output',
            () => Buffer.concat([...output.stdout, ...output.stderr]).length === all,
          );
        }
        await perform(step, session, exec);
      }

      expect(await session.end).to.deep.equal(expectedEnd(frames));
      for (const stream of ['stdout', 'stderr'] as const) {
        expect(Buffer.concat(output[stream]).equals(expected[stream]), stream).to.equal(true);
      }
      const sent = frames.map(({ send }) => send).filter((frame) => isOurs(frame));
      expect(exec.received).to.deep.equal(sent);
    });
  }
});

function bytesOf(frames: readonly ExecStep[], stream: 'stdout' | 'stderr'): Buffer {
  return Buffer.concat(frames.map((step) => Buffer.from(frameOf(step.recv)?.[stream]?.data ?? '', 'base64')));
}

function isLoss({ event, code, note }: ExecStep): boolean {
  return (event === 'close' && code === 1006) || (note?.startsWith('client close') ?? false);
}

/** Plays one line of a transcript, on the side that did it. */
async function perform(step: ExecStep, session: ExecSession, exec: ScriptedExec): Promise<void> {
  const { recv, send, event, code, reason, note } = step;
  if (recv !== undefined) await exec.send(frameOf(recv));
  if (isOurs(send)) {
    const { stdin, tty_size: size } = send;
    const before = exec.received.length;
    if (stdin?.data !== undefined) await session.write(Buffer.from(stdin.data, 'base64'));
    if (stdin?.close) session.closeStdin();
    if (size) session.resize(size.width, size.height);
    await exec.until((received) => received.length > before);
  }
  if (note?.startsWith('client close')) session.destroy();
  else if (event === 'close' && code === 1006) exec.reset();
  else if (event === 'close') exec.close(code, reason);
}

function isOurs(frame: unknown): frame is Frame {
  return typeof frame === 'object' && frame !== null && ('stdin' in frame || 'tty_size' in frame);
}

/** A received frame; one that the recording shortened to `… (N characters)` is filled up with the letter it held. */
function frameOf(recv: unknown): Frame | undefined {
  if (typeof recv !== 'string') return recv as Frame | undefined;
  const length = Number(/… \(([0-9]+) characters\)$/.exec(recv)?.[1]);
  const base64Length = length - '{"stdout":{"data":""}}'.length;
  const data = Buffer.alloc(Math.floor(base64Length / 4) * 3 - 2, 'a').toString('base64');
  expect(recv.startsWith(`{"stdout":{"data":"${data.slice(0, 20)}`)).to.equal(true);
  expect(data).to.have.length(base64Length);
  return { stdout: { data } };
}

function expectedEnd(frames: readonly ExecStep[]): ExecEnd {
  const exit = frames.map(({ recv }) => frameOf(recv)).find((frame) => frame?.exited);
  if (exit) return { kind: 'exited', exitCode: exit.result?.exit_code ?? 0 };
  const leaves = frames.some(({ note }) => note?.startsWith('client close'));
  if (leaves) return { kind: 'closed', code: 1006, reason: 'dropped by this side' };
  const close = frames.find(({ event }) => event === 'close');
  const { code = 0, reason = '' } = close ?? {};
  return { kind: 'closed', code, reason: code === 1006 ? 'the connection was lost' : reason };
}
