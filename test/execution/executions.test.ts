import { expect } from 'chai';
import { executionId } from '../../lib/base/ids.js';
import type { Executions } from '../../lib/execution/executions.js';
import { TestRunner } from '../support/claimed-runner.js';
import { begin, executionRequest, startExecutions } from '../support/executions.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { RecordingSink } from '../support/recording-sink.js';
import { PlayedExecs } from '../support/played-execs.js';

const PIPE = executionRequest('true', { interactive: false });

describe('Executions', () => {
  let clock: FakeClock;
  let nomad: PlayedExecs;
  let runner: TestRunner;
  let executions: Executions;

  beforeEach(async () => {
    clock = new FakeClock();
    nomad = new PlayedExecs();
    runner = new TestRunner();
    executions = await startExecutions({ nomad, clock });
  });

  afterEach(async () => {
    const stopped = executions.stop();
    await clock.advance(5000);
    await stopped;
  });

  function expectCode(code: string, act: () => unknown): void {
    expect(act).to.throw().with.property('code', code);
  }

  /** Plays a command that ends by itself. */
  async function exit(exec = nomad.pipe()): Promise<void> {
    await exec.say('stderr', exec.start() + exec.stop());
    await exec.say('stdout', `${exec.start()}${exec.stop()}0\n`);
  }

  describe('prepare and take', () => {
    it('hands an execution out once [B12]', () => {
      const id = executions.prepare(runner, PIPE);
      expect(executions.take(runner, id).id).to.equal(id);
      expectCode('EXECUTION_TAKEN', () => executions.take(runner, id));
    });

    it('keeps an execution that ended as taken', async () => {
      const { id, run } = begin(executions, runner, PIPE);
      await settle();
      await exit();
      await run.exit;
      expectCode('EXECUTION_TAKEN', () => executions.take(runner, executionId(id)));
    });

    it('knows no execution of another runner, and none that was made up', () => {
      const id = executions.prepare(runner, PIPE);
      expectCode('EXECUTION_NOT_FOUND', () => executions.take(new TestRunner(), id));
      expectCode('EXECUTION_NOT_FOUND', () => executions.take(runner, executionId('nonsense')));
    });

    it('forgets one that nobody opens [B20]', async () => {
      const id = executions.prepare(runner, PIPE);
      await clock.advance(59_999);
      const other = executions.prepare(runner, PIPE);
      await clock.advance(1);
      expectCode('EXECUTION_NOT_FOUND', () => executions.take(runner, id));
      executions.take(runner, other);
    });

    it('bounds how many of a runner are prepared or run [B20]', async () => {
      const runs = [begin(executions, runner, PIPE)];
      await settle();
      for (let i = 1; i < 4; i += 1) executions.prepare(runner, PIPE);
      expectCode('TOO_MANY_EXECUTIONS', () => executions.prepare(runner, PIPE));
      executions.prepare(new TestRunner(), PIPE);
      await exit();
      await runs[0]?.run.exit;
      executions.prepare(runner, PIPE);
      expectCode('TOO_MANY_EXECUTIONS', () => executions.prepare(runner, PIPE));
      await clock.advance(60_000);
      executions.prepare(runner, PIPE);
    });

    it('bounds how many of all runners are prepared, whichever way each of them ends [B20]', async () => {
      await using bounded = await startExecutions({ nomad, clock, execution: { maxPrepared: 4 } });
      const fill = (): void => {
        for (let i = 0; i < 4; i += 1) bounded.prepare(new TestRunner(), PIPE);
        expectCode('TOO_MANY_EXECUTIONS', () => bounded.prepare(new TestRunner(), PIPE));
      };
      fill();
      await clock.advance(60_000);
      const leaving = new TestRunner();
      bounded.prepare(leaving, PIPE);
      leaving.leave('returned');
      const { run } = begin(bounded, new TestRunner(), PIPE);
      fill();
      await clock.advance(60_000);
      await settle();
      await exit();
      await run.exit;
      fill();
    });

    it('bounds what all prepared ones hold of the memory [B20]', async () => {
      await using bounded = await startExecutions({ nomad, clock, execution: { maxCommandBytes: 2 ** 27 } });
      const large = executionRequest('x'.repeat(100 * 1024 * 1024));
      bounded.prepare(new TestRunner(), large);
      bounded.prepare(new TestRunner(), large);
      expectCode('TOO_MANY_EXECUTIONS', () => bounded.prepare(new TestRunner(), large));
      bounded.prepare(new TestRunner(), PIPE);
    });

    it('refuses a command that is larger than the limit, counted in bytes', () => {
      const fits = '€'.repeat(349_525) + 'x';
      executions.prepare(runner, executionRequest(fits));
      expectCode('COMMAND_TOO_LARGE', () => executions.prepare(runner, executionRequest(`${fits}x`)));
    });

    it('counts an execution until its processes are dead', async () => {
      nomad.killResult = undefined;
      const begun = [0, 1, 2, 3].map(() => begin(executions, runner, PIPE));
      await settle();
      begun[0]?.run.hangUp();
      await settle();
      expectCode('TOO_MANY_EXECUTIONS', () => executions.prepare(runner, PIPE));
    });

    it('drops what was prepared when its runner goes', () => {
      const id = executions.prepare(runner, PIPE);
      runner.leave('returned');
      expectCode('EXECUTION_NOT_FOUND', () => executions.take(runner, id));
      expectCode('RUNNER_GONE', () => executions.prepare(runner, PIPE));
      expect(clock.armed).to.equal(0);
    });

    it('runs one once', async () => {
      const id = executions.prepare(runner, PIPE);
      const prepared = executions.take(runner, id);
      prepared.run(new RecordingSink());
      expect(await prepared.run(new RecordingSink()).exit).to.deep.include({ kind: 'failed' });
      await settle();
      expect(nomad.execs).to.have.length(1);
    });

    it('refuses what no process can be given', () => {
      const bad = [
        { command: 'a\0b' },
        { environment: { 'A B': 'x' } },
        { environment: { '': 'x' } },
        { environment: { A: '\0' } },
        { environment: { A: 'x'.repeat(131_072) } },
        {
          environment: Object.fromEntries(
            Array.from({ length: 20 }, (_, i) => [`A${i}`, 'x'.repeat(60_000)]),
          ),
        },
        { workingDirectory: '' },
        { workingDirectory: '/\0' },
        { workingDirectory: '/'.repeat(4096) },
      ];
      for (const overrides of bad) {
        expectCode('INVALID_REQUEST', () => executions.prepare(runner, executionRequest('true', overrides)));
      }
    });
  });

  describe('runs', () => {
    it('are listed by runner while they last', async () => {
      const { id, run } = begin(executions, runner, PIPE);
      await settle();
      expect(executions.running(runner.id)).to.deep.equal([
        { id, interactive: false, privileged: false, state: 'asked' },
      ]);
      expect(executions.running(new TestRunner().id)).to.deep.equal([]);
      await exit();
      await run.exit;
      await settle();
      expect(executions.running(runner.id)).to.deep.equal([]);
    });

    it('hold the inactivity of their runner back, prepared ones do not [A2-69]', async () => {
      executions.prepare(runner, PIPE);
      expect(runner.activities).to.equal(0);
      begin(executions, runner, PIPE);
      await settle();
      expect(runner.activities).to.equal(1);
      await exit();
      await clock.advance(1000);
      expect(runner.activities).to.equal(0);
    });

    it('find out once for a runner who its user is', async () => {
      const first = begin(executions, runner, PIPE);
      await settle();
      expect(nomad.pipe().input).to.include("serai_users='user nobody'");
      const exec = nomad.pipe();
      await exec.say('stdout', `R 1 1 0\nU ${exec.token} gosu user 7 8 /home/it's\n`);
      await exit();
      await first.run.exit;
      begin(executions, runner, PIPE);
      await settle();
      expect(nomad.pipe().input).to.include("serai_as 'gosu'").and.to.include("/home/it'\\''s'");
      begin(executions, runner, { ...PIPE, privileged: true });
      await settle();
      expect(nomad.pipe().input).to.include('serai_as none\n');
      begin(executions, new TestRunner({ user: 'else' }), PIPE);
      await settle();
      expect(nomad.pipe().input).to.include("serai_users='else'");
    });

    it('get the variables of the configuration, the environment and the request, the last one winning', async () => {
      const environment = { B: 'environment', C: 'environment' };
      begin(executions, new TestRunner({ environment }), { ...PIPE, environment: { C: "it's" } });
      await settle();
      expect(nomad.pipe().input).to.include("export 'CODEOCEAN=true'");
      expect(nomad.pipe().input).to.include("set -- 'B=environment' 'C=it'\\''s'\n");
      begin(executions, new TestRunner({ environment: { CODEOCEAN: 'false' } }), PIPE);
      await settle();
      expect(nomad.pipe().input).not.to.include("export 'CODEOCEAN");
      expect(nomad.pipe().input).to.include("set -- 'CODEOCEAN=false'\n");
    });
  });

  describe('life', () => {
    it('takes nothing before start and after stop', async () => {
      const id = executions.prepare(runner, PIPE);
      await executions.stop();
      expectCode('STOPPED', () => executions.prepare(runner, PIPE));
      expectCode('STOPPED', () => executions.take(runner, id));
      expect(await executions.start().catch((error: unknown) => error)).to.have.property(
        'code',
        'ILLEGAL_STATE',
      );
    });

    it('hangs everything up on stop and leaves nothing behind', async () => {
      const held = nomad.hold();
      const opening = begin(executions, runner, executionRequest('true'));
      await settle();
      nomad.opening = undefined;
      const running = begin(executions, new TestRunner(), PIPE);
      executions.prepare(runner, PIPE);
      await settle();
      const stopped = executions.stop();
      expect(executions.stop()).to.equal(stopped);
      // First the processes are ended, then the session gets its second.
      await clock.advance(1000);
      await clock.advance(1000);
      await stopped;
      expect([await opening.run.exit, await running.run.exit]).to.deep.equal([
        { kind: 'hang-up' },
        { kind: 'hang-up' },
      ]);
      expect(nomad.execs.every(({ destroyed }) => destroyed)).to.equal(true);
      expect([clock.armed, executions.active, runner.activities]).to.deep.equal([0, 0, 0]);
      held.open();
    });
  });
});
