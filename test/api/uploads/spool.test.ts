import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { needs, ROOT } from '../../support/needs.js';
import { FakeClock } from '../../support/fake-clock.js';
import type { Answer } from '../../support/test-api.js';
import { TestApi } from '../../support/test-api.js';
import { eventually, gate } from '../../support/waiting.js';

const KIB = 1024;
/** Room for one large body and a few small ones. */
const SETTINGS = {
  SERAI_SERVER_MAX_BODY_BYTES: String(1024 * KIB),
  SERAI_SERVER_MAX_SPOOL_BYTES: String(1024 * KIB),
};

function body(path: string, sizeBytes: number): { copy: { path: string; content: string }[] } {
  return { copy: [{ path, content: Buffer.alloc(sizeBytes, path).toString('base64') }] };
}

describe('uploads', () => {
  let folder: string;
  let folderBefore: string | undefined;
  let clock: FakeClock;
  let api: TestApi;
  let files: string;

  beforeEach(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'serai-uploads-test-'));
    folderBefore = process.env['TMPDIR'];
    process.env['TMPDIR'] = folder;
    clock = new FakeClock();
    api = await TestApi.open({ clock, settings: SETTINGS });
    files = `/runners/${(await api.prepare()).runnerId}/files`;
  });

  afterEach(async () => {
    await api.server.destroy();
    if (folderBefore === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = folderBefore;
    expect(readdirSync(folder)).to.deep.equal([]);
    rmSync(folder, { recursive: true });
  });

  const copy = (name: string, sizeBytes: number): Promise<Answer> =>
    api.send('PATCH', files, body(name, sizeBytes));

  /** Begins an upload that takes most of the room until the gate opens. */
  async function holdRoom(): Promise<{ open: () => void; answer: Promise<Answer> }> {
    const held = gate();
    api.files.updateGate = held.promise;
    const answer = copy('held', 600 * KIB);
    await eventually('the update', () => api.files.updates === 1);
    return { open: () => held.open(), answer };
  }

  it('pass through the disk, and lie in no folder meanwhile', async () => {
    const { open, answer } = await holdRoom();
    expect(readdirSync(folder)).to.deep.equal([]);
    open();
    expect((await answer).status).to.equal(204);
    expect(api.files.contents.get('held')).to.deep.equal(Buffer.alloc(600 * KIB, 'held'));
  });

  it('wait while others take all the room, the small ones where they fit beside', async () => {
    const { open, answer } = await holdRoom();
    const small = copy('small', 10 * KIB);
    await eventually('the small one beside', () => api.files.updates === 2);
    const large = copy('large', 600 * KIB);
    await eventually('the large one to wait', () => clock.armed === 1);
    open();
    expect((await Promise.all([answer, small, large])).map(({ status }) => status)).to.deep.equal([
      204, 204, 204,
    ]);
    expect(api.files.contents.get('large')).to.have.length(600 * KIB);
    expect(clock.armed).to.equal(0);
  });

  it('are answered with 429 where there is no room in time, and leave it to others then', async () => {
    const { open, answer } = await holdRoom();
    const large = copy('large', 600 * KIB);
    await eventually('the large one to wait', () => clock.armed === 1);
    await clock.advance(30_000);
    const refused = await large;
    expect(refused.status).to.equal(429);
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/);
    open();
    expect((await answer).status).to.equal(204);
    expect((await copy('large', 600 * KIB)).status).to.equal(204);
  });

  it('take only the room that they need once they are there, though their size was not said', async () => {
    const held = gate();
    api.files.updateGate = held.promise;
    const chunked = fetch(api.base + files, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: new Blob([JSON.stringify(body('a', 300 * KIB))]).stream(),
      duplex: 'half',
    });
    await eventually('the update', () => api.files.updates === 1);
    const other = copy('b', 300 * KIB);
    await eventually('the other beside', () => api.files.updates === 2);
    held.open();
    expect([(await chunked).status, (await other).status]).to.deep.equal([204, 204]);
  });

  for (const [what, send] of [
    [
      'leaves in mid body',
      `PATCH FILES HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"copy":`,
    ],
    ['sends no JSON', `PATCH FILES HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{"cop`],
  ] as const) {
    it(`give their room back when their client ${what}`, async () => {
      const socket = connect(Number(new URL(api.base).port), '127.0.0.1');
      socket.on('error', () => undefined).resume();
      socket.write(send.replace('FILES', `/api/v1${files}`));
      await eventually('the request', () => api.server.connections === 1);
      socket.destroySoon();
      await eventually('its end', () => api.server.connections === 0);
      expect((await copy('after', 700 * KIB)).status).to.equal(204);
    });
  }

  it('with a file beyond its limit are answered with 413, naming it, and change nothing [B22]', async () => {
    await using limited = await TestApi.open({
      settings: { ...SETTINGS, SERAI_SERVER_MAX_FILE_BYTES: String(100 * KIB) },
    });
    const { runnerId } = await limited.prepare();
    const patch = (...sizes: number[]): Promise<Answer> =>
      limited.send('PATCH', `/runners/${runnerId}/files`, {
        delete: ['./*'],
        copy: sizes.flatMap((size, index) => body(`f${index}`, size).copy),
      });
    const refused = await patch(100 * KIB, 100 * KIB + 1);
    expect(refused.status).to.equal(413);
    expect((refused.json as { message: string }).message).to.equal(
      'copy[1] is larger than the limit of 102400 bytes',
    );
    expect(limited.files.updates).to.equal(0);
    expect((await patch(100 * KIB, 0)).status).to.equal(204);
  });

  it('are answered with 429 where the disk is full', async function () {
    needs(this, ROOT); // it takes a small disk
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'none', folder]);
    try {
      const refused = await copy('large', 600 * KIB);
      expect([refused.status, refused.json]).to.deep.equal([
        429,
        { message: 'the disk that uploads are kept on is full' },
      ]);
      expect((await copy('small', 100 * KIB)).status).to.equal(204);
    } finally {
      execFileSync('umount', [folder]);
    }
  });

  it('of many clients at once are all right, in little memory [A3-79]', async function () {
    this.timeout(60_000);
    await using service = await TestApi.open({
      settings: {
        SERAI_SERVER_MAX_BODY_BYTES: String(20 * 1024 * KIB),
        SERAI_SERVER_MAX_SPOOL_BYTES: String(60 * 1024 * KIB),
      },
    });
    service.files.keepsContents = false;
    const { runnerId } = await service.prepare();
    const url = `${service.base}/runners/${runnerId}/files`;
    const sizeBytes = 12 * 1024 * KIB;
    global.gc?.();
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5);
    try {
      const statuses = await Promise.all(Array.from({ length: 20 }, () => streamCopy(url, sizeBytes)));
      expect(statuses).to.deep.equal(Array(20).fill(204));
    } finally {
      clearInterval(watch);
    }
    expect(service.files.bytesSeen).to.equal(20 * sizeBytes);
    expect(peak - before).to.be.lessThan(128 * 1024 * KIB);
  });
});

/** Copies a file of zeros, whose body is made while it is sent. */
function streamCopy(url: string, sizeBytes: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const [head, tail] = ['{"copy":[{"path":"zeros","content":"', '"}]}'];
    const piece = Buffer.alloc(64 * KIB, 'A');
    let left = (sizeBytes / 3) * 4;
    const headers = {
      'content-type': 'application/json',
      'content-length': head.length + left + tail.length,
      connection: 'close',
    };
    const req = request(url, { method: 'PATCH', headers, agent: false }, (res) => {
      res.resume().on('end', () => resolve(res.statusCode));
    });
    req.on('error', reject).write(head);
    const write = (): void => {
      while (left > 0) {
        const chunk = piece.subarray(0, left);
        left -= chunk.length;
        if (!req.write(chunk)) {
          req.once('drain', write);
          return;
        }
      }
      req.end(tail);
    };
    write();
  });
}
