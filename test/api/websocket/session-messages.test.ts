import { expect } from 'chai';
import type { SessionClient } from '../../support/session-client.js';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';

const OVER = { durationMs: 0, oomKilled: false };

describe('a message of the client of a session', () => {
  let api: TestApi;
  let session: SessionClient;

  beforeEach(async () => {
    api = await TestApi.open();
    session = await api.openSession();
  });

  afterEach(async () => {
    session.client.socket.terminate();
    await api.server.destroy();
  });

  it('with a body that is none is answered with what is wrong, by its id', async () => {
    session.exec('runs');
    const wrong: readonly (readonly [object, string])[] = [
      [{ type: 'exec', id: 'a' }, 'command is missing'],
      [
        { type: 'exec', id: 'a', command: 1 },
        'command must be a text without NUL and without half a surrogate pair, not 1',
      ],
      [{ type: 'exec', id: 'a', command: 'x', timeout: 1 }, 'unknown field "timeout"'],
      [
        { type: 'exec', id: 'a', command: 'x', environment: { A: 1 } },
        'environment.A must be a text without NUL and without half a surrogate pair, not 1',
      ],
      [
        { type: 'exec', id: '€'.repeat(128), command: 'x', interactive: null },
        'interactive must be true or false, not null',
      ],
    ];
    for (const [message, data] of wrong) {
      const { length } = session.messages;
      session.send(message);
      await eventually('the answer', () => session.messages.length > length);
      expect(session.messages.at(-1)).to.deep.equal({
        type: 'error',
        data,
        ...OVER,
        id: (message as { id: string }).id,
      });
    }
    expect(api.executions.prepared.size).to.equal(1);
  });

  it('that is none is refused, by its id where that can be read', async () => {
    const types = 'one of exec, cancel, stdin, resize, signal, eof';
    const refused: readonly (readonly [string, string, string?])[] = [
      ['?', 'the message must be JSON'],
      ['null', 'the message must be an object, not null'],
      ['{"type":"exec"}', 'id is missing'],
      ['{"type":"exec","id":""}', 'command is missing'],
      [`{"type":"exec","command":"x","id":""}`, `id must be a text of 1 to 128 characters, not this text`],
      [
        `{"type":"exec","command":"x","id":"${'x'.repeat(129)}"}`,
        'id must be a text of 1 to 128 characters, not this text',
      ],
      ['{"type":"exec","command":"x","id":7}', 'id must be a text of 1 to 128 characters, not 7'],
      ['{"type":"cancel"}', 'id is missing'],
      ['{"type":"cancel","id":"a","why":1}', 'unknown field "why"', 'a'],
      ['{"id":"a"}', 'type is missing', 'a'],
      ['{"type":"run","id":"a"}', `type must be ${types}, not this text`, 'a'],
      ['{"type":"stdin","id":"a"}', 'data is missing', 'a'],
      ['{"type":"eof"}', 'no command runs'],
      ['{"type":"eof","id":"a"}', 'no command of this id runs', 'a'],
      ['{"type":"cancel","id":"a"}', 'no command of this id runs or waits', 'a'],
    ];
    for (const [text, data, of] of refused) {
      const { length } = session.messages;
      session.client.socket.send(text);
      await eventually(`the answer to ${text}`, () => session.messages.length > length);
      const answer = session.messages.at(-1);
      expect(answer, text).to.deep.equal({
        type: 'refused',
        data,
        ...(of === undefined ? {} : { id: of }),
      });
    }
    session.client.socket.send(Buffer.from([1]));
    await eventually('the last answer', () => session.messages.length === refused.length + 1);
    expect(session.client.closeCode).to.equal(undefined);
  });
});
