import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import type { FileContent } from '../../lib/execution/files/api.js';
import type { Answer } from '../support/test-api.js';
import { TestApi } from '../support/test-api.js';
import { eventually } from '../support/waiting.js';

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const LARGE = base64(Buffer.alloc(100_000, 'x'));

/** Body, and the words that the refusal has. */
const REFUSED: readonly (readonly [body: unknown, named: string])[] = [
  [[], 'the request must be an object'],
  ['null', 'the request must be an object, not null'],
  ['', 'the body is empty'],
  ['{"copy":[]}{}', 'no single JSON value'],
  ['{"copy":[', 'no single JSON value'],
  [{ copy: {} }, 'copy must be a list, or null, not an object'],
  [{ delete: './*' }, 'delete must be a list, or null'],
  [{ delete: [1] }, 'delete[0] must be a path'],
  [{ delete: ['a', ''] }, 'delete[1] must be a path'],
  [{ delete: ['a\0b'] }, 'delete[0] must be a path'],
  [{ delete: ['x'.repeat(4096)] }, 'delete[0] must be a path'],
  [{ move: [] }, 'unknown field "move"'],
  [{ copy: ['a'] }, 'copy[0] must be an object'],
  [{ copy: [{}] }, 'copy[0].path is missing'],
  [{ copy: [{ path: null }] }, 'copy[0].path must be a path'],
  [{ copy: [{ path: 'a', content: 5 }] }, 'copy[0].content must be a text in base64, or null, not 5'],
  [{ copy: [{ path: 'a', mode: 420 }] }, 'unknown field "mode" in copy[0]'],
  [{ copy: [{ path: 'a' }, { path: 'b', content: 'A' }] }, 'copy[1].content must be padded base64'],
  [{ copy: [{ path: 'a', content: 'QQ' }] }, 'copy[0].content must be padded base64'],
  [{ copy: [{ path: 'a', content: 'QQ==QQ==' }] }, 'copy[0].content must be padded base64'],
  [{ copy: [{ path: 'a', content: `${LARGE}A` }] }, 'copy[0].content must be padded base64'],
  [
    { copy: [{ path: 'a' }, { path: 'b', content: `${LARGE.slice(4)}*AAA` }] },
    'copy[1].content must be padded',
  ],
  [{ copy: [{ path: 'd/', content: 'QQ==' }] }, 'copy[0] is a folder and cannot have content'],
];

describe('the file routes', () => {
  let api: TestApi;
  let runnerId: string;
  let uploads: string;
  const temporary = process.env['TMPDIR'];

  before(async () => {
    uploads = await mkdtemp(path.join(tmpdir(), 'serai-files-test-'));
    process.env['TMPDIR'] = uploads;
  });
  after(async () => {
    if (temporary === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = temporary;
    await rm(uploads, { recursive: true });
  });
  beforeEach(async () => {
    api = await TestApi.open({ settings: { SERAI_SERVER_MAX_BODY_BYTES: '1000000' } });
    ({ runnerId } = await api.prepare());
  });
  afterEach(async () => {
    await api.server.stop();
    await eventually('no body to be left on disk', () => readdirSync(uploads).length === 0);
  });

  const files = (query = ''): string => `/runners/${runnerId}/files${query}`;
  const messageOf = (answer: Answer): string => (answer.json as { message: string }).message;
  const contents = (): Record<string, string> =>
    Object.fromEntries([...api.files.contents].map(([name, data]) => [name, data.toString()]));

  describe('PATCH', () => {
    it(`answers 400, naming the field, to each of ${REFUSED.length} bad bodies, and changes nothing [B22]`, async () => {
      for (const [body, named] of REFUSED) {
        const answer = await api.send('PATCH', files(), body);
        expect(answer.status, `${named}: ${answer.text}`).to.equal(400);
        expect(messageOf(answer)).to.contain(named);
        expect(api.files.contents.size, named).to.equal(0);
      }
    });

    it('copies contents of every length, empty, null and absent ones too [A3-72, A3-82]', async () => {
      const texts = { one: '1', two: '12', three: '123', line: 'no newline', long: 'l'.repeat(50_000) };
      const copy = Object.entries(texts).map(([name, text]) => ({ path: name, content: base64(text) }));
      const empty = [{ path: 'absent' }, { path: 'null', content: null }, { path: 'empty', content: '' }];
      const answer = await api.send('PATCH', files(), {
        delete: null,
        copy: [...copy, ...empty, { path: 'd/' }],
      });
      expect([answer.status, answer.text, answer.headers.get('content-length')]).to.deep.equal([
        204,
        '',
        '0',
      ]);
      expect(contents()).to.deep.equal({ ...texts, absent: '', null: '', empty: '' });
    });

    it('takes contents as JSON encoders and base64 tools write them', async () => {
      const bytes = Buffer.from('fbff', 'hex');
      const body = `{"copy":[{"path":"a","content":"+\\/8="},{"path":"b","content":"\\u002b\\u002F8="},{"path":"c","content":"+\\/\\r\\n8="}]}`;
      expect((await api.send('PATCH', files(), body)).status).to.equal(204);
      expect([...api.files.contents.values()]).to.deep.equal([bytes, bytes, bytes]);
    });

    it('takes nothing to do', async () => {
      for (const body of [{}, { copy: null, delete: null }, { copy: [], delete: [] }]) {
        expect((await api.send('PATCH', files(), body)).status).to.equal(204);
      }
    });

    it('takes 5000 paths at once [B18]', async () => {
      const paths = Array.from({ length: 5000 }, (_, index) => `./folder/file-${index}`);
      expect((await api.send('PATCH', files(), { delete: paths })).status).to.equal(204);
    });

    it('answers 413 to a body beyond the limit, whatever is in it [A3-79, B22]', async () => {
      const content = base64(Buffer.alloc(1_000_000));
      for (const body of [{ copy: [{ path: 'a', content }] }, 'x'.repeat(1_000_001)]) {
        const answer = await api.send('PATCH', files(), body);
        expect(answer.status).to.equal(413);
        expect(messageOf(answer)).to.contain('1000000 bytes');
      }
      expect(api.files.contents.size).to.equal(0);
    });

    it('reads 20 MB for a runner that is gone to their end and answers a clean 410 [A3-71]', async () => {
      const body = Buffer.alloc(20_000_000, ' ');
      expect(await writeAll(`${api.base}/runners/none/files`, body)).to.match(/^HTTP\/1\.1 410 /);
    });

    it('answers 500 and names the paths that could not be written', async () => {
      const words = 'tar: d/x: Cannot open: Permission denied';
      api.files.failure = new ServiceError('FILES_NOT_WRITTEN', words);
      const answer = await api.send('PATCH', files(), { copy: [{ path: 'd/x' }] });
      expect([answer.status, answer.json]).to.deep.equal([500, { message: words, errorCode: 'UNKNOWN' }]);
    });
  });

  describe('GET', () => {
    it('lists an empty folder as an empty list, and others with every field', async () => {
      expect((await api.send('GET', files())).json).to.deep.equal({ files: [] });
      api.files.contents.set('./a', Buffer.from('abc'));
      api.files.contents.set('./b\n"\u{1F600}', Buffer.alloc(0));
      const { json } = await api.send('GET', files('?path=./&recursive=false&privilegedExecution=true'));
      expect((json as { files: { name: string; size: number }[] }).files).to.have.length(2);
      expect((json as { files: unknown[] }).files[0]).to.deep.include({
        name: './a',
        entryType: '-',
        size: 3,
      });
    });

    it('refuses parameters of another form', async () => {
      for (const [query, named] of [
        ['?path=', 'path must be a path'],
        ['?path=%00', 'path must be a path'],
        ['?recursive=1', 'recursive must be true or false'],
        ['?recursive=', 'recursive must be true or false'],
        ['?privilegedExecution=yes', 'privilegedExecution must be true or false'],
        ['?path=a&path=b', 'the parameter "path" is given twice'],
        ['?depth=1', 'unknown field "depth"'],
      ] as const) {
        const answer = await api.send('GET', files(query));
        expect([answer.status, messageOf(answer)].join(' '), query).to.contain(`400 ${named}`);
      }
      expect(messageOf(await api.send('GET', files('/raw')))).to.equal('path is missing');
    });

    it('answers HEAD to both without a body', async () => {
      api.files.contents.set('a', Buffer.from('abc'));
      const list = await api.send('HEAD', files());
      const raw = await api.send('HEAD', files('/raw?path=a'));
      expect([list.status, list.text, raw.status, raw.text]).to.deep.equal([200, '', 200, '']);
      expect(raw.headers.get('content-length')).to.equal('3');
    });

    it('tells a missing file from a runner that is gone [A3-83]', async () => {
      const missing = await api.send('GET', files('/raw?path=nope'));
      expect(missing.status).to.equal(424);
      expect(messageOf(missing)).to.contain('file not found or insufficient permissions');
      await api.send('DELETE', `/runners/${runnerId}`);
      for (const route of [files(), files('/raw?path=nope')]) {
        expect((await api.send('GET', route)).status).to.equal(410);
      }
      expect((await api.send('PATCH', files(), {})).status).to.equal(410);
    });
  });

  describe('GET raw', () => {
    it('answers the bytes with their length, those of an empty file too [A3-72]', async () => {
      api.files.contents.set('a', Buffer.from('abc'));
      api.files.contents.set('empty', Buffer.alloc(0));
      for (const [name, text] of [
        ['a', 'abc'],
        ['empty', ''],
      ] as const) {
        const { status, headers, text: got } = await api.send('GET', files(`/raw?path=${name}`));
        expect([status, got, headers.get('content-length')]).to.deep.equal([200, text, String(text.length)]);
        expect(headers.get('content-type')).to.equal('application/octet-stream');
      }
    });

    it('names the file as browsers take it', async () => {
      for (const [name, disposition] of [
        ['d/main.py', 'attachment; filename="main.py"'],
        ['a b', 'attachment; filename="a b"'],
        ['a"b\\c', `attachment; filename="a_b_c"; filename*=UTF-8''a%22b%5Cc`],
        ["é'(*)", `attachment; filename="_'(*)"; filename*=UTF-8''%C3%A9%27%28%2A%29`],
        ['a\r\nb', `attachment; filename="a__b"; filename*=UTF-8''a%0D%0Ab`],
      ] as const) {
        api.files.contents.set(name, Buffer.from('x'));
        const { headers } = await api.send('GET', files(`/raw?path=${encodeURIComponent(name)}`));
        expect(headers.get('content-disposition'), name).to.equal(disposition);
      }
    });

    it('streams a file whose length is not known, and breaks off one that fails on the way', async () => {
      const answerWith = (bytes: () => AsyncIterable<Buffer>, sizeBytes: number | undefined): void => {
        const content: FileContent = {
          sizeBytes,
          bytes: bytes(),
          [Symbol.asyncDispose]: () => Promise.resolve(),
        };
        api.files.read = () => Promise.resolve(content);
      };
      answerWith(async function* () {
        yield await Promise.resolve(Buffer.from('a'));
        yield Buffer.from('b');
      }, undefined);
      const whole = await api.send('GET', files('/raw?path=/proc/x'));
      expect([whole.text, whole.headers.get('content-length')]).to.deep.equal(['ab', null]);
      answerWith(async function* () {
        yield await Promise.resolve(Buffer.from('a'));
        throw new ServiceError('EXECUTION_FAILED', 'the file became shorter');
      }, 2);
      const isBrokenOff = async (): Promise<void> => {
        const failure = await api.send('GET', files('/raw?path=a')).catch((error: Error) => error.message);
        expect(failure).to.match(/^(terminated|fetch failed)$/);
      };
      await isBrokenOff();
      answerWith(async function* () {
        yield await Promise.resolve(Buffer.from('ab'));
        throw new ServiceError('EXECUTION_FAILED', 'the end could not be read');
      }, 2);
      await isBrokenOff();
    });
  });
});

describe('POST /runners/{id}/execute', () => {
  it('takes a command of 200 kB [B18]', async () => {
    await using api = await TestApi.open();
    const { runnerId } = await api.prepare();
    const command = `echo ${'x'.repeat(200_000)}`;
    expect((await api.send('POST', `/runners/${runnerId}/execute`, { command })).status).to.equal(200);
    expect(api.executions.last.request.command).to.equal(command);
  });
});

/** Sends a request whose client reads no answer before it has written everything. */
function writeAll(url: string, body: Buffer): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.on('error', reject);
    socket.write(
      `PATCH ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
        `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body, () => {
      let answer = '';
      socket.setEncoding('utf8');
      socket.on('data', (text: string) => (answer += text));
      socket.on('end', () => resolve(answer));
      socket.resume();
    });
  });
}
