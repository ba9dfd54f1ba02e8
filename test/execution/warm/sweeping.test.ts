import { expect } from 'chai';
import { DevAgent } from '../../../lib/dev-agent/agent.js';
import { skipWithoutDriver } from '../../support/needs.js';
import { Program } from '../../support/program.js';
import { ServiceClient } from '../../support/test-service.js';
import { eventually } from '../../support/waiting.js';
import { PATIENCE_MS } from './place.js';

/** What the sessions of a runner take: two execs for the one with a terminal, one for files. */
const EXECS = 3;
const PRIVILEGED = { interactive: false, privilegedExecution: true };
const UNPRIVILEGED = { interactive: false };

describe('A service that was killed and is started again', function () {
  this.timeout(300_000);
  let agent: DevAgent;
  let program: Program | undefined;
  let client: ServiceClient;

  before(async function () {
    agent = new DevAgent({ driver: 'sandbox' });
    try {
      await agent.start();
    } catch (error) {
      skipWithoutDriver(this, error);
    }
  });

  after(async () => {
    await program?.[Symbol.asyncDispose]();
    await agent.stop();
  });

  async function startService(): Promise<Program> {
    program = new Program(['serve', '--port', '0', '--log-format', 'text'], {
      NOMAD_ADDR: agent.address,
      SERAI_CLUSTER_REPLICA: 'ours',
      SERAI_EXECUTION_WARM: 'on',
    });
    client = new ServiceClient(await program.printed(/serving .*url=(\S+)/, PATIENCE_MS));
    const isReady = async (): Promise<boolean> =>
      (await client.send('GET', '/statistics/execution-environments')).ok;
    await eventually('the service to be ready', isReady, PATIENCE_MS);
    return program;
  }

  async function look(runner: string, command: string, body: object = PRIVILEGED): Promise<string> {
    return (await client.run(runner, command, body)).text('stdout');
  }

  /** Folders of ours in a runner, and how many processes name each. */
  async function sessions(runner: string): Promise<string[]> {
    const found = await look(
      runner,
      'for f in $(ls -d /tmp/.serai-ours-*); do echo "$f $(pgrep -f -c "[/]tmp/${f#/tmp/}")"; done',
    );
    return found.trim().split('\n').sort();
  }

  it('sweeps away what it had open in its runners, and nothing else', async () => {
    const first = await startService();
    await client.openPool(1);
    const used = await client.claim();
    await client.untilIdle(1);
    await eventually('the sessions', () => agent.openExecs === 2 * EXECS, PATIENCE_MS);
    const old = (await sessions(used)).map((line) => line.split(' ')[0] ?? '');
    expect(old.length).to.be.greaterThan(0);
    const boot = /ours-([0-9a-f]+)-/.exec(old[0] ?? '')?.[1] ?? 'none';

    const setUp = [
      'mkdir /tmp/.serai-other-1-2; ln -s /etc /tmp/.serai-ours-link; touch /etc/kept',
      'setsid -f sh -c "sleep 600; : /tmp/.serai-other-1-2" >/dev/null 2>&1 </dev/null',
    ];
    await look(used, setUp.join('\n'));
    const ofUser = [
      'mkdir /tmp/.serai-ours-user; echo mine >/tmp/.serai-ours-user/file',
      'setsid -f sh -c "sleep 600; : /tmp/.serai-ours-old-1" >/dev/null 2>&1 </dev/null',
      'setsid -f sh -c "sleep 600; : harmless" >/dev/null 2>&1 </dev/null',
    ];
    await look(used, ofUser.join('\n'), UNPRIVILEGED);

    first.kill('SIGKILL');
    await first.ended();
    await eventually('the sockets to be closed', () => agent.openExecs === 0, PATIENCE_MS);
    await startService();
    await client.untilIdle(1);
    // A used runner is swept by whoever opens a session in it next.
    await client.run(used, 'true');
    await eventually('the sessions', () => agent.openExecs === 2 * EXECS, PATIENCE_MS);
    const idle = await client.claim();

    for (const runner of [used, idle]) {
      const left = await look(
        runner,
        `ls -d /tmp/.serai-ours-${boot}-* 2>/dev/null; pgrep -a -f "[o]urs-${boot}-"`,
      );
      expect(left).to.equal('');
      expect((await sessions(runner)).filter((line) => / [1-9]/.test(line))).to.not.deep.equal([]);
    }
    const kept =
      'cat /tmp/.serai-ours-user/file; ls -d /tmp/.serai-other-1-2 /tmp/.serai-ours-link /etc/kept';
    expect(await look(used, kept)).to.equal(
      'mine\n/etc/kept\n/tmp/.serai-other-1-2\n/tmp/.serai-ours-link\n',
    );
    const alive =
      'for x in other-1-2 ours-old-1 harmless; do pgrep -f -c "^sh -c sleep 600; : .*$x"; done; true';
    expect(await look(used, alive)).to.equal('1\n0\n1\n');
  });
});
