import { expect } from 'chai';
import { needs, ROOT } from '../support/needs.js';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { createService } from '../../lib/service.js';
import { RecordingLogger } from '../support/test-api.js';
import { configFor, freePort, ServiceClient, SHELL, TestService } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

describe('the service on an embedded agent', function () {
  this.timeout(60_000);

  it('serves the whole way from an environment to the end of a program', async () => {
    await using opened = await TestService.open();
    const { client } = opened;
    await client.openPool(2);
    expect((await client.send('GET', '/health')).status).to.equal(204);
    const runnerId = await client.claim();
    await client.untilIdle(2);
    expect(await client.statistics()).to.include({ usedRunners: 1, state: 'ready' });
    const program = await client.run(runnerId, 'echo out; echo err >&2; exit 3');
    expect(program.closeCode).to.equal(1000);
    expect(program.types[0]).to.equal('start');
    expect(program.text('stdout')).to.equal('out\r\n');
    expect(program.text('stderr').replace('\r', '')).to.equal('err\n');
    expect(program.messages.at(-1)).to.deep.equal({ type: 'exit', data: 3 });
    expect((await client.send('DELETE', `/runners/${runnerId}`)).status).to.equal(204);
    expect((await client.send('DELETE', `/runners/${runnerId}`)).status).to.equal(410);
    expect((await client.send('DELETE', '/execution-environments/0')).status).to.equal(204);
    expect(await client.statistics()).to.equal(undefined);
    expect(opened.log.lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });

  it('leaves pools as they are when environments are read [A1-18]', async () => {
    await using opened = await TestService.open();
    const { client } = opened;
    await client.openPool(2);
    for (const path of ['', '/0']) {
      expect((await client.send('GET', `/execution-environments${path}?fetch=true`)).status).to.equal(200);
    }
    expect(await client.statistics()).to.include({ idleRunners: 2, pendingRunners: 0 });
    expect((await client.send('PUT', '/execution-environments/0', SHELL)).status).to.equal(204);
    expect(await client.statistics()).to.include({ idleRunners: 2, pendingRunners: 0 });
  });

  it('tells in the statistics of an environment that cannot run commands unprivileged [A4-87]', async function () {
    needs(this, ROOT);
    await using opened = await TestService.open({ SERAI_RUNNER_USER: 'root' });
    const { client } = opened;
    await client.openPool(1);
    const refused = await client.run(await client.claim(), 'id -u');
    expect(refused.types).to.deep.equal(['start', 'error']);
    expect(await client.statistics()).to.include({
      state: 'unhealthy',
      reason: 'the user for unprivileged commands is root',
    });
  });

  it('listens while Nomad is down, says so once, answers 503, and serves when it is up', async () => {
    const port = await freePort();
    const log = new RecordingLogger();
    const service = createService(configFor(`http://127.0.0.1:${port}`), { log });
    try {
      await service.start();
      const client = new ServiceClient(service.url);
      const outages = () => log.lines.filter(({ level }) => level === 'warn' || level === 'error');
      const retries = () => log.lines.filter(({ message }) => message.startsWith('Nomad is still'));
      await eventually('a second attempt', () => retries().length > 0);
      expect(outages().map(({ message }) => message)).to.have.length(1);
      for (const path of ['/health', '/execution-environments', '/statistics/execution-environments']) {
        const answer = await client.send('GET', path);
        expect(answer.status, path).to.equal(503);
        expect(await answer.json()).to.have.property('errorCode', 'NOMAD_UNREACHABLE');
        expect(answer.headers.get('retry-after'), path).to.match(/^[1-9]\d*$/);
      }
      const claim = await client.send('POST', '/runners', { executionEnvironmentId: 0 });
      expect(claim.status).to.equal(503);
      await using agent = new DevAgent({ driver: 'process', port });
      await agent.start();
      await eventually('the service to have read Nomad', () => service.ready, 30_000);
      expect((await client.send('GET', '/health')).status).to.equal(204);
      expect(outages()).to.have.length(1);
      await service.destroy();
    } finally {
      await service.destroy();
    }
  });

  it('refuses to start on a base job that is none, and leaves nothing listening', async () => {
    const config = configFor('http://127.0.0.1:1', { SERAI_TEMPLATES_JOB: import.meta.filename });
    const service = createService(
      { ...config, templates: { ...config.templates, job: '/nowhere/job.json' } },
      { log: new RecordingLogger() },
    );
    await service.start().then(
      () => expect.fail('it started'),
      (error: unknown) => expect(error).to.have.property('code', 'INVALID_CONFIG'),
    );
    expect(service.state).to.equal('stopped');
  });

  it('ends running programs when it is stopped, and keeps runners for the next start', async () => {
    await using opened = await TestService.open();
    const { client, service, agent } = opened;
    await client.openPool(2);
    const runnerId = await client.claim();
    await client.untilIdle(2);
    const program = await client.open(runnerId, 'echo go; sleep 600');
    await eventually('the program to run', () => program.text('stdout') !== '');
    await service.stop();
    expect(program.messages.at(-1)).to.deep.equal({ type: 'error', data: 'the service is stopping' });
    const next = createService(configFor(agent.address), { log: opened.log });
    try {
      await next.start();
      await eventually('the next service to have read Nomad', () => next.ready);
      const again = new ServiceClient(next.url);
      expect(await again.statistics()).to.include({ idleRunners: 2, usedRunners: 1, pendingRunners: 0 });
      const answer = await again.run(runnerId, 'echo still here; ps -ef | grep -c "[s]leep 600"');
      expect(answer.text('stdout')).to.equal('still here\r\n0\r\n');
    } finally {
      await next.destroy();
    }
  });
});
