import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { waitForPools } from '../../lib/cli/pool-progress.js';
import { registerEnvironments } from '../../lib/cli/registration.js';
import { Talk } from '../../lib/cli/talk.js';
import { missingTools } from '../../lib/cli/tools.js';
import { parseDefinition } from '../../lib/environments/definitions.js';
import type { EnvironmentAnswer, EnvironmentBody, EnvironmentStatistics } from '../../lib/protocol/http.js';
import { FakeClock, settle } from '../support/fake-clock.js';

/** A stream that keeps its text. */
class Paper {
  text = '';
  readonly isTTY: boolean;

  constructor(isTTY = false) {
    this.isTTY = isTTY;
  }

  write(text: string): void {
    this.text += text;
  }
}

describe('Talk', () => {
  it('writes each new progress on a line of its own where there is no terminal', () => {
    const paper = new Paper();
    const talk = new Talk(paper);
    talk.progress('pool', '1 of 2');
    talk.progress('pool', '1 of 2');
    talk.progress('pool', '2 of 2');
    talk.say('exit', '0\nsecond line');
    expect(paper.text).to.equal('pool      1 of 2\npool      2 of 2\nexit      0\n          second line\n');
  });

  it('writes progress over itself on a terminal, and nothing of it stays behind a shorter one', () => {
    const paper = new Paper(true);
    const talk = new Talk(paper);
    talk.progress('pool', '1 of 2 (why)');
    talk.progress('pool', '2 of 2');
    talk.say('exit', '0');
    expect(paper.text).to.equal('\rpool      1 of 2 (why)\rpool      2 of 2      \nexit      0\n');
  });
});

describe('missingTools', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'serai-tools-'));
    writeFileSync(path.join(folder, 'tool'), '');
    chmodSync(path.join(folder, 'tool'), 0o755);
    writeFileSync(path.join(folder, 'text'), '');
    mkdirSync(path.join(folder, 'folder'));
    symlinkSync(path.join(folder, 'gone'), path.join(folder, 'dangling'));
  });

  after(() => rmSync(folder, { recursive: true }));

  it('finds programs in PATH and in the folders of the system', async () => {
    const lookup = { path: `/nowhere:${folder}`, isSandboxed: false };
    expect(await missingTools(['tool', 'sh'], lookup)).to.deep.equal([]);
    expect(await missingTools(['text', 'folder', 'dangling', 'no-such-tool'], lookup)).to.deep.equal([
      'text',
      'folder',
      'dangling',
      'no-such-tool',
    ]);
  });

  it('looks only where a sandbox does', async () => {
    expect(await missingTools(['tool', 'sh'], { path: folder, isSandboxed: true })).to.deep.equal(['tool']);
  });
});

describe('registerEnvironments', () => {
  const definition = (id: number, name: string, requires: string) =>
    parseDefinition(
      `${name}.yaml`,
      `{id: ${id}, name: ${name}, image: "${name}:1", prewarmingPoolSize: 2, cpuLimit: 10, memoryLimit: 64,
        networkAccess: false, exposedPorts: [], requires: [${requires}], sample: {command: x, expect: x}}`,
    );
  const definitions = [definition(0, 'Shell', 'sh'), definition(1, 'Other', 'no-such-tool, nor-this')];

  async function register(options: {
    existing?: readonly EnvironmentAnswer[];
    poolSize?: number;
    usesMachine?: boolean;
  }): Promise<{ text: string; put: [number, EnvironmentBody][]; usable: string[] }> {
    const paper = new Paper();
    const put: [number, EnvironmentBody][] = [];
    const usable = await registerEnvironments({
      api: {
        environments: () => Promise.resolve([...(options.existing ?? [])]),
        putEnvironment: (id, body) => {
          put.push([id, body]);
          return Promise.resolve();
        },
      },
      definitions,
      poolSize: options.poolSize,
      tools: options.usesMachine === false ? undefined : { path: process.env['PATH'], isSandboxed: false },
      talk: new Talk(paper),
    });
    return { text: paper.text, put, usable: usable.map(({ environment }) => environment.name ?? '') };
  }

  const shell: EnvironmentAnswer = {
    id: 0,
    name: 'Shell',
    image: 'Shell:1',
    prewarmingPoolSize: 2,
    cpuLimit: 10,
    memoryLimit: 64,
    networkAccess: false,
    exposedPorts: [],
  };

  it('registers what the machine can run, and says what it skips and why', async () => {
    const { text, put, usable } = await register({});
    expect(put.map(([id, { image, prewarmingPoolSize }]) => [id, image, prewarmingPoolSize])).to.deep.equal([
      [0, 'Shell:1', 2],
    ]);
    expect(usable).to.deep.equal(['Shell']);
    expect(text).to.contain('skipped   1 Other: this machine has no no-such-tool and no nor-this');
  });

  it('asks nothing of the machine where images bring the tools', async () => {
    const { usable } = await register({ usesMachine: false });
    expect(usable).to.deep.equal(['Shell', 'Other']);
  });

  it('leaves an environment that is there as it is, but for a size that is asked for', async () => {
    expect((await register({ existing: [shell] })).put).to.deep.equal([]);
    const sized = await register({ existing: [shell], poolSize: 7 });
    expect(sized.put.map(([id, { prewarmingPoolSize }]) => [id, prewarmingPoolSize])).to.deep.equal([[0, 7]]);
  });

  it('does not touch an id that another environment has', async () => {
    const { put, text, usable } = await register({
      existing: [{ ...shell, image: 'theirs:1' }],
      poolSize: 7,
    });
    expect([put, usable]).to.deep.equal([[], []]);
    expect(text).to.contain('the id is taken by Shell');
  });
});

describe('waitForPools', () => {
  const pool = (idleRunners: number, reason?: string): EnvironmentStatistics => ({
    id: 0,
    prewarmingPoolSize: 2,
    idleRunners,
    usedRunners: 0,
    pendingRunners: 0,
    failedRunners: 0,
    state: 'filling',
    ...(reason === undefined ? {} : { reason }),
  });

  it('shows progress until all are full, of the environments it is about', async () => {
    const clock = new FakeClock();
    const paper = new Paper();
    const script = [[pool(0)], [pool(1)], [pool(2), { ...pool(0), id: 9 }]];
    const waiting = waitForPools({
      api: { statistics: () => Promise.resolve(script.shift() ?? []) },
      ids: new Set([0]),
      clock,
      talk: new Talk(paper),
      signal: new AbortController().signal,
    });
    await clock.advance(1000);
    expect(await waiting).to.equal(true);
    expect(paper.text.trimEnd().split('\n')).to.deep.equal([
      'pool      0 of 2 runners idle',
      'pool      1 of 2 runners idle',
      'pool      2 of 2 runners idle',
    ]);
    expect(clock.armed).to.equal(0);
  });

  it('gives up, with the reason, on pools that do not change any more', async () => {
    const clock = new FakeClock();
    const paper = new Paper();
    const waiting = waitForPools({
      api: { statistics: () => Promise.resolve([pool(1, 'no node has memory')]) },
      ids: new Set([0]),
      clock,
      talk: new Talk(paper),
      signal: new AbortController().signal,
    });
    await clock.advance(61_000);
    expect(await waiting).to.equal(false);
    expect(paper.text).to.contain('0 is not full: no node has memory');
  });

  it('ends when it is told to', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const waiting = waitForPools({
      api: { statistics: () => Promise.resolve([pool(1)]) },
      ids: new Set([0]),
      clock,
      talk: new Talk(new Paper()),
      signal: stop.signal,
    });
    await settle();
    stop.abort();
    expect(await waiting).to.equal(false);
    expect(clock.armed).to.equal(0);
  });
});
