import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import type { LineJson } from './support/agent-json.js';
import type { RawStream } from './support/raw-agent.js';
import { fixture, RawAgent, recordedLines, sleeper } from './support/raw-agent.js';
import { inAnyOrder, jobOf, linesOf, word } from './support/event-words.js';

interface Registered {
  readonly request: { readonly body: { readonly Job: { readonly ID: string } } };
}

describe('event stream of the embedded agent', () => {
  let raw: RawAgent;
  let stream: RawStream;

  beforeEach(async () => {
    raw = await RawAgent.start({ acceptAnyDriver: false, capacity: { cpuMhz: 4000, memoryMb: 4000 } });
    stream = await raw.events();
  });
  afterEach(() => raw.stop());

  function recordedJob(name: string): { ID: string } {
    return fixture<Registered>(`http/${name}`).request.body.Job;
  }

  /** The recorded job with less patience. */
  function hasty(name: string, from: string, to: string): { ID: string } {
    const text = JSON.stringify(recordedJob(name))
      .replace(from, to)
      .replace('"Delay":1000000000', '"Delay":50000000');
    return JSON.parse(text) as { ID: string };
  }

  async function until(jobId: string, last: RegExp): Promise<void> {
    await eventually(`${jobId} to come to ${last}`, () =>
      last.test(linesOf(stream.lines, jobId).at(-1) ?? ''),
    );
  }

  /** What a real server told of a job, with the death of a task that was killed as the agent reports it. */
  function recorded(name: string, jobId: string): string[] {
    return linesOf(recordedLines(name), jobId);
  }

  it('tells the life of a runner as a real server does', async () => {
    await raw.register(recordedJob('register'));
    await raw.allocation('7-life');
    await raw.register(recordedJob('register-enforce-index-ok'));
    await eventually('the replacement', async () => {
      const all = await raw.allocations('7-life');
      return (
        all.length === 2 &&
        all.every(
          ({ ClientStatus, DesiredStatus }) =>
            ClientStatus === (DesiredStatus === 'stop' ? 'complete' : 'running'),
        )
      );
    });
    await raw.purge('7-life');
    await until('7-life', /^Evaluation EvaluationUpdated complete job-deregister$/);
    await eventually('the second look at the purged job', () => {
      return (
        linesOf(stream.lines, '7-life').filter((line) => line.includes('complete job-deregister')).length ===
        2
      );
    });
    expect(inAnyOrder(linesOf(stream.lines, '7-life'))).to.deep.equal(
      inAnyOrder(recorded('runner-life', '7-life')),
    );
  });

  it('counts its indexes as a real server does', async () => {
    await raw.register(recordedJob('register-with-config-group'));
    await raw.allocation('7-cfg');
    await raw.register(recordedJob('register-config-group-update'));
    await until('7-cfg', /EvaluationUpdated complete/);
    const relative = (lines: readonly LineJson[]): [number, string][] => {
      const own = lines.filter(({ Events }) => Events?.some((event) => jobOf(event) === '7-cfg'));
      const [first] = own;
      return own.map((line) => [
        (line.Index ?? 0) - (first?.Index ?? 0),
        (line.Events ?? [])
          .filter(({ Topic }) => Topic !== 'Node')
          .map(word)
          .join(' + '),
      ]);
    };
    expect(relative(stream.lines)).to.deep.equal(relative(recordedLines('config-group-update')));
  });

  it('tells what goes wrong as a real server does', async () => {
    await raw.register(recordedJob('register-task-exits-1'));
    await raw.register(recordedJob('register-unplaceable'));
    await raw.register(recordedJob('register-no-driver'));
    await raw.register(recordedJob('register-bad-command'));
    await raw.register(hasty('register-restarts', 'sleep 1; exit 2', 'sleep 0.3; exit 2'));
    const jobs = ['7-exit1', '7-big', '7-java', '7-nocmd', '7-restart'];
    for (const job of ['7-exit1', '7-nocmd', '7-restart']) await until(job, /Job AllocationUpdated dead/);
    for (const job of ['7-big', '7-java']) await until(job, /Evaluation EvaluationUpdated complete/);
    for (const job of jobs) {
      await raw.purge(job);
      await until(job, /complete job-deregister/);
      // A report may or may not catch the moment in which a task runs that ends at once.
      const isKept = (line: string): boolean => job !== '7-exit1' || !line.includes('running/run running');
      expect(linesOf(stream.lines, job).filter(isKept), job).to.deep.equal(recorded('failures', job));
    }
  });

  it('tells a restart on request without a pending state between', async () => {
    await raw.register(recordedJob('register-docker-with-port'));
    const { ID } = await raw.allocation('7-port');
    await raw.request('PUT', `/v1/client/allocation/${ID}/restart`, {});
    await until(
      '7-port',
      /restarts=1 restarted Received,Task Setup,Started,Restart Signaled,Terminated,Restarting,Started$/,
    );
    const restart = linesOf(stream.lines, '7-port').filter((line) => line.includes('Restart Signaled'));
    const real = recorded('docker-runner-with-port', '7-port').filter((line) =>
      line.includes('Restart Signaled'),
    );
    expect(restart).to.deep.equal(real.slice(0, 2));

    await raw.request('PUT', `/v1/allocation/${ID}/stop`, {});
    await eventually('the replacement to run', async () => {
      const all = await raw.allocations('7-port');
      return all.length === 2 && all.some((one) => one.ID !== ID && one.ClientStatus === 'running');
    });
    const stop = linesOf(stream.lines, '7-port').filter((line) => /DesiredStatus|being migrated/.test(line));
    expect(stop.slice(0, 2)).to.deep.equal(
      recorded('docker-runner-with-port', '7-port')
        .filter((line) => /DesiredStatus|being migrated/.test(line))
        .slice(0, 2),
    );
  });

  it('tells a death as pending and then running', async () => {
    await raw.register(hasty('register-restarts', 'sleep 1; exit 2', 'sleep infinity'));
    const { ID } = await raw.allocation('7-restart');
    const exec = raw.exec(ID, ['sh', '-c', 'echo start; sleep 40'], { tty: true });
    await exec.until('start');
    await raw.agent.faults.killTask(ID);
    expect((await exec.closed).code).to.equal(1000);
    expect(exec.exitCode).to.equal(137);
    await until('7-restart', /restarts=1 restarted .*Restarting,Started$/);
    expect(linesOf(stream.lines, '7-restart').slice(-2)).to.deep.equal(
      recorded('container-killed', '9-b').slice(-2),
    );
  });

  it('gives evidence of a lack of memory', async () => {
    const id = await raw.run(sleeper('7-oom'));
    await raw.agent.faults.killTask(id, undefined, { oomKilled: true });
    const { TaskStates } = await raw.allocation('7-oom', 'failed');
    const terminated = TaskStates?.['default-task']?.Events.find(({ Type }) => Type === 'Terminated');
    const real = fixture<{ response: { body: { TaskStates: typeof TaskStates } } }>(
      'http/allocation-failed-oom',
    );
    const wanted = real.response.body.TaskStates?.['default-task']?.Events.find(
      ({ Type }) => Type === 'Terminated',
    );
    expect(terminated?.Details).to.deep.equal(wanted?.Details);
    expect(terminated?.DisplayMessage).to.equal(wanted?.DisplayMessage);
  });
});
