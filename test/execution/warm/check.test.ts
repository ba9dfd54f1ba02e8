import { expect } from 'chai';
import { systemClock } from '../../../lib/base/clock.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import type { Aftermath, CommandEnd, CommandSession } from '../../../lib/execution/session.js';
import { openChecked } from '../../../lib/execution/warm/check.js';
import type { Checked } from '../../../lib/execution/warm/check.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { EXECUTION_CONFIG, STEADY_PULSE } from '../../support/executions.js';

const NEVER = new AbortController().signal;
const EXITED: CommandEnd = { kind: 'exited', exitCode: 0 };

class FakeSession implements CommandSession {
  readonly root = undefined;
  readonly ended = new Promise<void>(() => undefined);
  isClosed = false;
  readonly #end: CommandEnd;
  readonly #aftermath: Aftermath;

  constructor(end: CommandEnd, aftermath: Aftermath) {
    this.#end = end;
    this.#aftermath = aftermath;
  }

  run(): Promise<CommandEnd> {
    return Promise.resolve(this.#end);
  }
  settle(): Promise<Aftermath> {
    return Promise.resolve(this.#aftermath);
  }
  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
  write(): Promise<void> {
    return Promise.resolve();
  }
  closeStdin(): void {}
  resize(): void {}
  pause(): void {}
  resume(): void {}
  flush(): void {}
  destroy(): void {}
}

async function check(session: FakeSession): Promise<Checked['kind']> {
  const runner = new TestRunner();
  const checked = await openChecked(
    {
      clock: systemClock,
      randomness: systemRandomness,
      pulse: STEADY_PULSE,
      nomad: { openExec: () => Promise.reject(new Error('not to be opened')) },
      config: { execution: EXECUTION_CONFIG, runner: { user: 'user' } },
    },
    {
      ...{ runner, environment: runner.environment, folder: '/tmp/x', signal: NEVER, user: undefined },
      open: () => Promise.resolve(session),
    },
  );
  return checked.kind;
}

describe('openChecked', () => {
  for (const aftermath of ['clean', 'suspect'] as const) {
    it(`keeps a session that is ${aftermath} after a command that does nothing`, async () => {
      const session = new FakeSession(EXITED, aftermath);
      expect(await check(session)).to.equal('ready');
      expect(session.isClosed).to.equal(false);
    });
  }

  const others: [CommandEnd, Aftermath, Checked['kind']][] = [
    [EXITED, 'spent', 'single'],
    [{ kind: 'exited', exitCode: 3 }, 'clean', 'wrong'],
    [{ kind: 'refused', refusal: 'no-drop' }, 'clean', 'refused'],
    [{ kind: 'lost', exec: 'control', end: { kind: 'exited', exitCode: 1 } }, 'spent', 'wrong'],
    [
      { kind: 'lost', exec: 'control', end: { kind: 'closed', code: 1006, reason: '' } },
      'spent',
      'unavailable',
    ],
  ];
  for (const [end, aftermath, kind] of others) {
    it(`closes one that is ${kind}: ${JSON.stringify(end)}, ${aftermath}`, async () => {
      const session = new FakeSession(end, aftermath);
      expect(await check(session)).to.equal(kind);
      expect(session.isClosed).to.equal(true);
    });
  }
});
