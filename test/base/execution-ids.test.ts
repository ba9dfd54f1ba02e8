import { expect } from 'chai';
import { newExecutionId, replicaId, replicaOfExecution, systemRandomness } from '../../lib/base/ids.js';

describe('ids of executions', () => {
  it('name the replica that they were made for, and none without one', () => {
    for (const name of ['a', 'host_7200', '0f_'.repeat(13), 'abcdef01']) {
      expect(replicaOfExecution(newExecutionId(systemRandomness, replicaId(name)))).to.equal(name);
    }
    expect(replicaOfExecution(newExecutionId(systemRandomness))).to.equal(undefined);
  });

  it('of clients name none where they are not of the form', () => {
    const uuid = systemRandomness.uuid();
    for (const id of [
      '',
      uuid,
      `-${uuid}`,
      `A-${uuid}`,
      `a-${uuid}x`,
      `a-b-${uuid}`,
      `a-${uuid.toUpperCase()}`,
      'a-1',
    ]) {
      expect(replicaOfExecution(id), id).to.equal(undefined);
    }
  });
});
