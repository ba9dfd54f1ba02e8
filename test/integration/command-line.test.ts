import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { Scope } from '../../lib/base/scope.js';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { commandLineOf, descendantsOf, isAlive, Program } from '../support/program.js';
import { ServiceClient } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

describe('serai', function () {
  this.timeout(120_000);

  describe('start', () => {
    it('--once runs a sample program through the public API and leaves no process', async () => {
      await using program = new Program([
        'start',
        '--once',
        '--driver',
        'process',
        '--pool',
        '1',
        '--port',
        '0',
      ]);
      await program.printed(/^(service) /m);
      const processes = descendantsOf(program.pid);
      expect(await program.ended(), program.stdout + program.stderr).to.equal(0);
      expect(program.stdout).to.match(
        /^output {4}Hello from Python, 5050\nexit {6}0 \(claim .* end .* ms\)\n/m,
      );
      expect(processes.length).to.be.greaterThan(0);
      await eventually('its processes to be gone', () => !processes.some(isAlive), 5000);
    });

    it('serves until a signal, then ends agent and tasks', async () => {
      await using program = new Program(['start', '--driver', 'process', '--pool', '1', '--port', '0']);
      const url = await program.printed(/^ready (http:\S+)$/m);
      const client = new ServiceClient(url);
      const runnerId = await client.claim();
      const run = await client.run(runnerId, 'echo $((6 * 7))');
      expect(run.text('stdout')).to.equal('42\r\n');
      const processes = descendantsOf(program.pid);
      program.kill('SIGINT');
      expect(await program.ended(), program.stderr).to.equal(0);
      await eventually('its processes to be gone', () => !processes.some(isAlive), 5000);
    });

    it('takes the agent and its tasks along when it is killed', async () => {
      await using program = new Program(['start', '--driver', 'process', '--pool', '1', '--port', '0']);
      await program.printed(/^(ready) http/m);
      const processes = descendantsOf(program.pid);
      program.kill('SIGKILL');
      await program.ended();
      await eventually('its processes to be gone', () => !processes.some(isAlive), 5000);
    });

    it('ends, and fails, when its agent does', async () => {
      await using program = new Program(['start', '--driver', 'process', '--pool', '1', '--port', '0']);
      await program.printed(/^(ready) http/m);
      const processes = descendantsOf(program.pid);
      const agent = processes.find((pid) => commandLineOf(pid).includes('agent'));
      expect(agent).to.be.a('number');
      process.kill(agent!, 'SIGKILL');
      expect(await program.ended(), program.stderr).to.equal(1);
      expect(program.stdout).to.contain('the embedded agent has ended');
      await eventually('its processes to be gone', () => !processes.some(isAlive), 5000);
    });

    it('says so where its port is taken, and leaves no process', async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      await using program = new Program(['start', '--driver', 'process', '--port', String(port)]);
      await program.printed(/^(agent) /m);
      const processes = descendantsOf(program.pid);
      expect(await program.ended()).to.equal(1);
      server.close();
      expect(program.stderr).to.contain(`cannot listen on 127.0.0.1:${port}: it is taken; choose another`);
      await eventually('its processes to be gone', () => !processes.some(isAlive), 5000);
    });

    it('uses the Nomad that is configured, and leaves what is there', async () => {
      await using agent = new DevAgent({ driver: 'process' });
      await agent.start();
      for (const what of ['added', 'kept']) {
        await using program = new Program(['start', '--once', '--pool', '1', '--port', '0'], {
          NOMAD_ADDR: agent.address,
        });
        expect(await program.ended(), program.stdout + program.stderr).to.equal(0);
        expect(program.stdout).to.match(new RegExp(`^${what} +0 Python$`, 'm'));
      }
    });
  });

  describe('serve', () => {
    it('drains after a signal: a running program ends as usual, and the process by itself', async () => {
      await using agent = new DevAgent({ driver: 'process' });
      await agent.start();
      await using program = new Program(['serve', '--port', '0', '--log-format', 'text'], {
        NOMAD_ADDR: agent.address,
      });
      const client = new ServiceClient(await program.printed(/serving .*url=(\S+)/));
      await eventually('the service to be ready', async () => (await client.statistics()) === undefined);
      await eventually('health', async () => (await client.send('GET', '/health')).status === 204);
      await client.openPool(1);
      const runnerId = await client.claim();
      const running = await client.open(runnerId, 'echo go; read answer; echo "got $answer"; exit 4');
      await eventually('the program to run', () => running.text('stdout') !== '');
      program.kill('SIGTERM');
      await program.printed(/ (stopping) /);
      running.socket.send('on\n');
      await running.closed();
      expect(running.messages.at(-1)).to.deep.equal({ type: 'exit', data: 4 });
      expect(await program.ended(), program.stderr).to.equal(0);
    });

    it('cuts at a second signal', async () => {
      await using agent = new DevAgent({ driver: 'process' });
      await agent.start();
      await using program = new Program(['serve', '--port', '0', '--log-format', 'text'], {
        NOMAD_ADDR: agent.address,
      });
      const client = new ServiceClient(await program.printed(/serving .*url=(\S+)/));
      await eventually('health', async () => (await client.send('GET', '/health')).status === 204);
      await client.openPool(1);
      const running = await client.open(await client.claim(), 'echo go; sleep 600');
      await eventually('the program to run', () => running.text('stdout') !== '');
      program.kill('SIGTERM');
      await program.printed(/ (stopping) /);
      await eventually('the cut', () => {
        program.kill('SIGTERM');
        return running.closeCode !== undefined;
      });
      expect(running.messages.at(-1)).to.deep.equal({ type: 'error', data: 'the service is stopping' });
      expect(await program.ended(), program.stderr).to.equal(0);
    });

    it('killed in the middle and started again, has the same runners, none twice [A1-1]', async () => {
      await using agent = new DevAgent({ driver: 'process' });
      await agent.start();
      const start = async (): Promise<[Program, ServiceClient]> => {
        const program = new Program(['serve', '--port', '0', '--log-format', 'text'], {
          NOMAD_ADDR: agent.address,
        });
        const client = new ServiceClient(await program.printed(/serving .*url=(\S+)/));
        await eventually(
          'the service to have read Nomad',
          async () => (await client.send('GET', '/execution-environments')).ok,
        );
        return [program, client];
      };
      await using stack = new Scope();
      const [first, client] = await start();
      stack.defer(() => first[Symbol.asyncDispose]());
      await client.openPool(2);
      const runnerId = await client.claim();
      await client.untilIdle(2);
      const running = await client.open(runnerId, 'echo go; sleep 600');
      await eventually('the program to run', () => running.text('stdout') !== '');
      first.kill('SIGKILL');
      await first.ended();
      const [second, again] = await start();
      stack.defer(() => second[Symbol.asyncDispose]());
      expect(await again.statistics()).to.include({ idleRunners: 2, usedRunners: 1, pendingRunners: 0 });
      const answer = await again.run(runnerId, 'echo here');
      expect(answer.text('stdout')).to.equal('here\r\n');
      const claims = await Promise.all([again.claim(), again.claim()]);
      expect(new Set([...claims, runnerId]).size).to.equal(3);
    });
  });
});
