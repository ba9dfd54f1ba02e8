import { expect } from 'chai';
import fc from 'fast-check';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import type { SessionClient } from '../../support/session-client.js';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 40);
const TYPES = ['start', 'stdout', 'stderr', 'refused', 'exit', 'timeout', 'error'];
const ENDS = ['exit', 'timeout', 'error'];

const anything = fc.string({ unit: 'binary', maxLength: 40 });
const id = fc.oneof(fc.constantFrom('a', 'b', 'c', 'd', '__proto__'), anything);
const execs = fc.record({ type: fc.constant('exec'), id, command: fc.constant('true') });
const forCommands = fc.record(
  {
    type: fc.constantFrom('cancel', 'stdin', 'eof', 'signal', 'resize', 'exec', 'exit'),
    id: fc.oneof(id, fc.jsonValue()),
    data: fc.oneof(anything, fc.constantFrom('SIGINT', 'SIGKILL')),
    cols: fc.integer({ min: 0, max: 99 }),
    rows: fc.constant(24),
    command: fc.oneof(anything, fc.jsonValue()),
    environment: fc.oneof(fc.dictionary(anything, anything), fc.constant(null)),
  },
  { requiredKeys: ['type'] },
);

/** What the client sends. */
const frames = fc.oneof(
  { weight: 4, arbitrary: execs.map((message) => JSON.stringify(message)) },
  { weight: 4, arbitrary: forCommands.map((message) => JSON.stringify(message)) },
  { weight: 1, arbitrary: fc.oneof(anything, fc.json({ maxDepth: 2 })) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }) },
);
/** What the execution that was begun last does. */
const doings = fc.constantFrom('output', 'exit', 'timeout', 'rest', 'turn', 'pause', 'resume');
const steps = fc.array(
  fc.oneof(
    frames.map((frame) => ({ frame })),
    doings.map((doing) => ({ doing })),
  ),
  { maxLength: 40 },
);

describe('sessions with any input', function () {
  this.timeout(120_000);

  let api: TestApi;
  let clock: FakeClock;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await TestApi.open({ clock });
  });

  afterEach(async () => {
    await api.server.destroy();
    expect(clock.armed).to.equal(0);
    expect(api.log.lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });

  /** One thing that the program or the network does. */
  async function act(doing: string, session: SessionClient, begun: readonly FakeExecution[]): Promise<void> {
    const last = begun.at(-1);
    if (doing === 'turn') await settle();
    else if (doing === 'pause') session.client.socket.pause();
    else if (doing === 'resume') session.client.socket.resume();
    else if (!last) return;
    else if (doing === 'output') last.sink.output('stdout', `<${last.id}>`);
    else if (doing === 'exit') last.end({ kind: 'exited', exitCode: 0 });
    else if (doing === 'timeout') last.end({ kind: 'time-limit' });
    else last.cleared = new Promise((resolve) => setImmediate(resolve));
  }

  it('answer each message, keep the order of each command, and never run two at once', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (script) => {
        const session = await api.openSession();
        const begun: FakeExecution[] = [];
        const living = new Set<FakeExecution>();
        let most = 0;
        api.executions.onPrepare = (execution) => {
          begun.push(execution);
          living.add(execution);
          most = Math.max(most, living.size);
          void execution.exit.then(() => living.delete(execution));
        };
        for (const step of script) {
          if ('frame' in step) session.client.socket.send(step.frame);
          else await act(step.doing, session, begun);
        }
        session.client.socket.resume();
        // Everything ends, and what is sent last is answered last.
        session.send({ type: 'exec', id: 'the last one', command: 'true' });
        await eventually('the last one', async () => {
          for (const execution of [...living]) execution.end({ kind: 'exited', exitCode: 0 });
          await settle();
          return session.ended.includes('the last one');
        });
        expect(most).to.be.at.most(1);
        expect(session.messages.filter(({ type }) => !TYPES.includes(type))).to.deep.equal([]);
        expectSoundCommands(session);
        session.client.socket.close();
        await session.closed();
        await eventually('the connections to end', () => api.server.connections === 0);
        expect(living.size).to.equal(0);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  });
});

/** An id may be used again after its end: each use is at most a start, output, one end. Refusals may stand anywhere. */
function expectSoundCommands(session: SessionClient): void {
  const running = new Set<string>();
  let ofWhom: string | undefined;
  for (const message of session.messages) {
    if (message.type === 'refused') continue;
    expect(message.id, `the id of ${message.type}`).to.be.a('string');
    if (message.type === 'start') {
      expect(running.size, 'commands that run').to.equal(0);
      running.add(message.id);
      ofWhom = message.id;
    } else if (ENDS.includes(message.type)) running.delete(message.id);
    else expect([message.id, running.has(message.id)]).to.deep.equal([ofWhom, true]);
  }
  expect(running.size).to.equal(0);
}
