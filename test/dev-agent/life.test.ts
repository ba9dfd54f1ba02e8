import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import { agentFolders, processesWith } from './support/processes.js';
import { RawAgent, sleeper } from './support/raw-agent.js';

describe('life of the embedded agent', () => {
  it('leaves nothing behind: processes, folders, sockets', async () => {
    const before = agentFolders();
    const raw = await RawAgent.start();
    const id = await raw.run(sleeper('7-life'));
    const stream = await raw.events();
    const exec = raw.exec(id, ['sh', '-c', 'setsid sleep 7117 & sleep 7117 & echo ready; exec sleep 7117']);
    await exec.until('ready');
    await eventually('the processes', () => processesWith('7117').length >= 3);
    await raw.stop();
    expect(processesWith('7117')).to.deep.equal([]);
    expect(agentFolders().filter((name) => !before.includes(name))).to.deep.equal([]);
    expect((await exec.closed).code).to.equal(1006);
    await stream.ended;
    const refused = await fetch(raw.agent.address).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
  });

  it('gives every caller of stop the same promise, started or not', async () => {
    const raw = new RawAgent();
    expect(raw.stop()).to.equal(raw.stop());
    await raw.stop();
    expect(raw.agent.state).to.equal('stopped');
  });

  it('leaves nothing behind when its port is taken', async () => {
    const first = await RawAgent.start();
    const port = Number(new URL(first.agent.address).port);
    const before = agentFolders();
    const second = new RawAgent({ port });
    const failure: unknown = await second.agent.start().catch((error: unknown) => error);
    expect(String(failure)).to.contain('EADDRINUSE');
    expect(agentFolders()).to.deep.equal(before);
    await first.stop();
  });
});
