import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { loadDefinitions, packagedDefinitions, parseDefinition } from '../../lib/environments/definitions.js';

const good = `
id: 9
name: Test
image: test:1
prewarmingPoolSize: 1
cpuLimit: 10
memoryLimit: 20
networkAccess: false
exposedPorts: []
requires: [sh]
sample: { command: echo hello, expect: hello }
`;

describe('loadDefinitions', () => {
  it('reads the environments of the package in order of id', async () => {
    const definitions = await loadDefinitions(packagedDefinitions);
    expect(definitions.map(({ environment }) => [environment.id, environment.name])).to.deep.equal([
      [0, 'Python'],
      [1, 'Node.js'],
      [2, 'Bash'],
      [3, 'C'],
      [4, 'Java'],
    ]);
  });

  it('ships samples that print what they promise', async () => {
    for (const { sample, requires, environment } of await loadDefinitions(packagedDefinitions)) {
      const isThere = requires.every((tool) => hasTool(tool));
      if (!isThere || environment.name === 'Java') continue; // Java takes seconds to compile; it is run by `npm start`
      const output = execFileSync('bash', ['-c', sample.command], { encoding: 'utf8' });
      expect(output.trim()).to.equal(sample.expect);
    }
  });

  it('refuses two files with one id, naming both', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'serai-test-'));
    try {
      writeFileSync(path.join(folder, 'a.yaml'), good);
      writeFileSync(path.join(folder, 'b.yml'), good);
      const error = await loadDefinitions(folder).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).to.have.property('code', 'INVALID_CONFIG');
      expect(error).to.have.property('message').that.contains('a.yaml').and.contains('b.yml');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('refuses a folder that is not there', async () => {
    const error = await loadDefinitions('/nowhere/at/all').catch((reason: unknown) => reason);
    expect(error).to.have.property('code', 'INVALID_CONFIG');
  });
});

describe('parseDefinition', () => {
  it('fills in what may be left out', () => {
    const { environment, sample, requires } = parseDefinition('x.yaml', good);
    expect(environment).to.deep.include({ id: 9, user: undefined, environment: {} });
    expect(sample.command).to.equal('echo hello');
    expect(requires).to.deep.equal(['sh']);
  });

  it('names every fault of a bad file', () => {
    const bad = good.replace('id: 9', 'id: -1').replace('name: Test', 'name: 5') + 'colour: red\n';
    for (const word of ['/id', '/name', 'colour'])
      expect(() => parseDefinition('x.yaml', bad)).to.throw(word);
    expect(() => parseDefinition('x.yaml', 'a: [')).to.throw('x.yaml');
    expect(() => parseDefinition('x.yaml', `${good}environment: { "a b": x }\n`)).to.throw('environment');
  });
});

function hasTool(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
