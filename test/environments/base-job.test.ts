import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { createBaseJob, loadBaseJob, packagedBaseJob } from '../../lib/environments/base-job.js';
import { theBaseJob } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import type { WireJob } from '../../lib/nomad/wire.js';

const noParser = { parse: () => Promise.reject(new Error('nothing is to be parsed')) };

describe('loadBaseJob', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'serai-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function fileWith(text: string): string {
    const file = path.join(folder, 'job');
    writeFileSync(file, text);
    return file;
  }

  it('reads the job of the package, which isolates its task and is not started again', async () => {
    const { document } = await loadBaseJob(packagedBaseJob, noParser);
    const [main, config] = document.TaskGroups ?? [];
    expect(main?.Tasks?.[0]).to.deep.include({ Name: 'default-task', Driver: 'docker' });
    expect(main?.Tasks?.[0]?.Config).to.deep.equal({
      command: 'sleep',
      args: ['infinity'],
      init: true,
      pids_limit: 256,
    });
    expect(main?.RestartPolicy).to.include({ Attempts: 0, Mode: 'fail' });
    expect(main?.ReschedulePolicy).to.include({ Attempts: 0, Unlimited: false });
    expect(config?.Count).to.equal(0);
  });

  it('takes a job with and without the outer "Job"', async () => {
    const bare = JSON.stringify(theBaseJob().document);
    const wrapped = `{"Job":${bare}}`;
    const both = [
      await loadBaseJob(fileWith(bare), noParser),
      await loadBaseJob(fileWith(wrapped), noParser),
    ];
    expect(both[0]).to.deep.equal(both[1]);
  });

  it('has HCL parsed by Nomad', async () => {
    const asked: string[] = [];
    const parser = {
      parse: (hcl: string): Promise<WireJob> => {
        asked.push(hcl);
        const parsed = structuredClone(theBaseJob().document);
        Object.assign(parsed.TaskGroups?.[0] ?? {}, { Count: null }); // left out in the text
        return Promise.resolve(parsed);
      },
    };
    const job = await loadBaseJob(fileWith('job "template" {}'), parser);
    expect(asked).to.deep.equal(['job "template" {}']);
    expect(job.document.Type).to.equal('batch');
  });

  it('refuses a job that no runner could be made of, naming what is wrong', async () => {
    const spoilers: [string, (job: WireJob) => void][] = [
      ['Type', (job) => (job.Type = 'service')],
      ['TaskGroups', (job) => (job.TaskGroups = null)],
      ['"config"', (job) => job.TaskGroups?.pop()],
      ['Count of "config"', (job) => Object.assign(job.TaskGroups?.[1] ?? {}, { Count: 1 })],
      ['Count of "default-group"', (job) => Object.assign(job.TaskGroups?.[0] ?? {}, { Count: 0 })],
      ['"default-task"', (job) => Object.assign(job.TaskGroups?.[0]?.Tasks?.[0] ?? {}, { Name: 'x' })],
      ['Driver', (job) => delete (job.TaskGroups?.[0]?.Tasks?.[0] as { Driver?: string }).Driver],
      ['"config" must have a task', (job) => Object.assign(job.TaskGroups?.[1] ?? {}, { Tasks: null })],
    ];
    for (const [word, spoil] of spoilers) {
      const job = structuredClone(theBaseJob().document);
      spoil(job);
      const error = await failureOf(() => createBaseJob('my.json', job));
      expect(error.code).to.equal('INVALID_CONFIG');
      expect(error.message).to.contain('my.json').and.to.contain(word);
    }
    for (const text of ['{', '[]', '{"Job":1}']) {
      const parser = { parse: () => Promise.resolve({ ID: 'x' }) };
      expect((await failureOf(() => loadBaseJob(fileWith(text), parser))).code).to.equal('INVALID_CONFIG');
    }
    const missing = await failureOf(() => loadBaseJob(path.join(folder, 'none'), noParser));
    expect(missing.message).to.contain('none');
  });
});
