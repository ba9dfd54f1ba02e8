import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { Place, PATIENCE_MS } from '../execution/warm/place.js';
import type { Runner } from '../execution/warm/place.js';
import { eventually } from '../support/waiting.js';
import { SocketClient } from '../support/websocket-client.js';

/** Executions over session sockets, and a tenth of that by POST and a socket each. */
const COUNT = Number(process.env['EXECUTIONS'] ?? 2000);
const RUNNERS = 4;
/** What one leaked execution holds is several times as much. */
const BYTES_PER_EXECUTION = 2048;
const NOISE_BYTES = 4 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Runs so many commands on one runner, one after the other, and expects the answer of each. */
async function work(place: Place, { id }: Runner, count: number): Promise<void> {
  // A client that keeps all it got would grow by itself.
  for (let done = 0; done < count; done += 100) {
    const session = await place.client.openSession(id);
    for (let i = done; i < Math.min(done + 100, count); i += 1) {
      const name = String(i);
      session.exec(name, `echo out${i}; echo err${i} >&2; exit ${i % 200}`);
      const end = await session.end(name);
      const told = [session.text(name), session.text(name, 'stderr'), end.type === 'exit' && end.data];
      expect(told).to.deep.equal([`out${i}\r\n`, `err${i}\n`, i % 200]);
    }
    session.client.socket.terminate();
    for (let i = 0; i < 10; i += 1) {
      const url = await place.client.prepare(id, `echo post${i}`);
      const client = await SocketClient.open(url);
      await eventually('the end', () => client.closeCode !== undefined, PATIENCE_MS);
      expect(client.text('stdout')).to.equal(`post${i}\r\n`);
    }
  }
}

/** Processes and folders of sessions in a runner. */
async function inRunner(runner: Runner): Promise<string> {
  const { stdout } = await runner.runNow('ls -d /tmp/.serai-* | wc -l; ps -e -o pid= | wc -l', {
    interactive: false,
    privilegedExecution: true,
  });
  return stdout;
}

describe('Many executions over warm sessions', function () {
  this.timeout(600_000);

  it(`leave nothing behind after ${COUNT + COUNT / 10} on ${RUNNERS} runners at once [A1-32]`, async function () {
    await using place = await Place.open(this, { path: 'on' });
    const runners: Runner[] = [];
    for (let i = 0; i < RUNNERS; i += 1) runners.push(await place.claim());
    await place.untilWarm();
    const { warmSessions } = place.opened.service;
    await Promise.all(runners.map((runner) => work(place, runner, 100)));
    await place.untilWarm();
    const look = async (): Promise<string[]> => Promise.all(runners.map(inRunner));
    const before = { told: await look(), execs: 0, heap: heapBytes(), count: warmSessions?.count };
    await eventually('looking to be over', () => place.opened.agent.openExecs % 3 === 0, PATIENCE_MS);
    before.execs = place.opened.agent.openExecs;

    await Promise.all(runners.map((runner) => work(place, runner, COUNT / RUNNERS)));

    await place.untilWarm();
    expect(warmSessions?.count).to.equal(before.count);
    await eventually(
      'the execs to be as before',
      () => place.opened.agent.openExecs === before.execs,
      PATIENCE_MS,
    );
    expect(await look()).to.deep.equal(before.told);
    expect(heapBytes() - before.heap).to.be.lessThan(NOISE_BYTES + COUNT * BYTES_PER_EXECUTION);
    expect(place.complaints).to.deep.equal([]);
  });
});
