import { expect } from 'chai';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { FakeClock } from '../support/fake-clock.js';
import { eventually } from '../support/waiting.js';
import type { EventJson, LineJson, RawStream } from './support/raw-agent.js';
import { fixture, RawAgent, recordedLines, sleeper } from './support/raw-agent.js';

/** One event in a few words, without ids. */
function word({ Topic, Type, Payload: { Job, Evaluation, Allocation, Node } }: EventJson): string {
  const about =
    Job?.Status ??
    (Evaluation && `${Evaluation.Status} ${Evaluation.TriggeredBy}`) ??
    (Allocation && describeAllocation(Allocation)) ??
    (Node && `${Node.Status} ${Node.SchedulingEligibility} drain=${Node.Drain}`);
  return `${Topic} ${Type} ${about}`;
}

function describeAllocation(allocation: NonNullable<EventJson['Payload']['Allocation']>): string {
  const { ClientStatus, DesiredStatus, DesiredDescription = '', TaskStates } = allocation;
  const tasks = Object.values(TaskStates ?? {}).map(
    ({ State, Failed, Restarts, LastRestart, Events }) =>
      `${State}${Failed ? ' failed' : ''} restarts=${Restarts}${LastRestart ? ' restarted' : ''} ` +
      Events.map(({ Type }) => Type).join(','),
  );
  return [`${ClientStatus}/${DesiredStatus}`, DesiredDescription, ...tasks].filter(Boolean).join(' ');
}

function jobOf({ Payload: { Job, Evaluation, Allocation } }: EventJson): string | undefined {
  return Job?.ID ?? Evaluation?.JobID ?? Allocation?.JobID;
}

/** What only shows when a start or an end takes long enough for a report in between. */
const BETWEEN =
  /^Allocation AllocationUpdated (pending\/run pending restarts=0 Received(,Task Setup)?|running\/stop .*,Killing)$/;

/**
 * The lines of one job: the words of each line that is not a client's report, together; of the reports, which a server
 * gathers as they come, each event as a line of its own.
 */
function linesOf(lines: readonly LineJson[], jobId: string): string[] {
  return lines.flatMap(({ Events = [] }) => {
    const own = Events.filter((event) => jobOf(event) === jobId && event.Topic !== 'Node');
    const words = own.map(word).filter((text) => !BETWEEN.test(text));
    const isReport = own.some(({ Topic, Type }) => Topic === 'Allocation' && Type === 'AllocationUpdated');
    if (isReport) return words;
    return words.length > 0 ? [words.join(' + ')] : [];
  });
}

/** Reports of two allocations may come in either order. */
function inAnyOrder(lines: readonly string[]): string[] {
  const isReport = (line: string): boolean => line.startsWith('Allocation AllocationUpdated');
  const sorted: string[] = [];
  for (let at = 0; at < lines.length;) {
    let end = at + 1;
    while (end < lines.length && isReport(lines[at] ?? '') && isReport(lines[end] ?? '')) end += 1;
    sorted.push(...lines.slice(at, end).sort());
    at = end;
  }
  return sorted;
}

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

describe('event stream of the embedded agent, as an HTTP answer', () => {
  let raw: RawAgent;

  beforeEach(async () => {
    raw = await RawAgent.start({ driver: 'simulated' });
  });
  afterEach(() => raw.stop());

  const indexes = ({ lines }: RawStream): number[] =>
    lines.map(({ Index = 0 }) => Index).filter((index) => index > 0);

  /** Registers a job and waits until everything of it was told. */
  async function settled(id: string): Promise<void> {
    await raw.run(sleeper(id));
  }

  it('begins with a heartbeat and what the buffer holds', async () => {
    await settled('8-a');
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 5);
    expect(stream.lines[0]).to.deep.equal({});
    expect(indexes(stream)[0]).to.equal(1);
    await stream.close();
  });

  it('holds the last 100 lines', async () => {
    for (let count = 0; count < 30; count += 1) await settled(`8-${count}`);
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 100);
    const all = indexes(stream);
    const last = await raw.events(`?index=${all.at(-1)}`);
    await eventually('the last line', () => indexes(last).length > 0);
    expect(all).to.have.length(100);
    expect(indexes(last)).to.deep.equal([all.at(-1)]);
    await stream.close();
    await last.close();
  });

  it('begins at an index: with the nearest line where it is gone or still to come', async () => {
    await settled('8-a');
    const stream = await raw.events();
    await eventually('the replay', () => indexes(stream).length >= 5);
    const all = indexes(stream);
    const from = await raw.events('?index=3');
    const future = await raw.events('?index=1000');
    await eventually('both replays', () => indexes(from).length > 0 && indexes(future).length > 0);
    expect(indexes(from)).to.deep.equal(all.filter((index) => index >= 3));
    expect(indexes(future)).to.deep.equal([all.at(-1)]);
    for (const one of [stream, from, future]) await one.close();
  });

  it('gives the topics that were asked for, whole or by key', async () => {
    const jobs = await raw.events('?topic=Job');
    const one = await raw.events('?topic=Evaluation:8-b&topic=Allocation:8-b');
    await settled('8-a');
    await settled('8-b');
    await eventually('the events', () => one.events.length >= 5 && jobs.events.length >= 4);
    expect(new Set(jobs.events.map(({ Topic }) => Topic))).to.deep.equal(new Set(['Job']));
    expect(new Set(one.events.map(jobOf))).to.deep.equal(new Set(['8-b']));
    await jobs.close();
    await one.close();
  });

  it('gives the events of one namespace, or of all', async () => {
    const other = new RawAgent({ driver: 'simulated', namespaces: ['default', 'runners'] });
    await other.agent.start();
    const streams = [
      await other.events(),
      await other.events('?namespace=runners'),
      await other.events('?namespace=*'),
    ];
    await other.request('PUT', '/v1/jobs?namespace=runners', { Job: sleeper('8-ns') });
    await other.register(sleeper('8-default'));
    await other.allocation('8-default');
    const seen = (stream: RawStream): string[] =>
      [...new Set(stream.events.map(jobOf))].filter((id) => id !== undefined).sort();
    await eventually('the events', () => (streams[2]?.events.length ?? 0) >= 10);
    expect(streams.map(seen)).to.deep.equal([['8-default'], ['8-ns'], ['8-default', '8-ns']]);
    await other.stop();
  });

  it('refuses a topic that it cannot read', async () => {
    const answer = await raw.request('GET', '/v1/event/stream?topic=a:b:c');
    expect(answer.status).to.equal(400);
    expect(answer.body).to.match(/Invalid key value pair for topic, topic: a:b:c/);
    expect((await raw.request('GET', '/v1/event/stream?index=x')).status).to.equal(400);
  });

  it('sends a heartbeat every 30 s', async () => {
    const clock = new FakeClock();
    await using agent = new DevAgent({ driver: 'simulated', clock });
    await agent.start();
    const response = await fetch(`${agent.address}/v1/event/stream?topic=Job`);
    const reader = response.body?.getReader();
    const text = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await text()).to.equal('{}\n');
    await clock.advance(29_999);
    await clock.advance(1);
    expect(await text()).to.equal('{}\n');
    await clock.advance(30_000);
    expect(await text()).to.equal('{}\n');
    await reader?.cancel();
  });

  it('forgets its listeners when their connections end', async () => {
    const stream = await raw.events();
    await stream.close();
    await eventually('the end of the stream', () => raw.agent.openStreams === 0);
  });
});
