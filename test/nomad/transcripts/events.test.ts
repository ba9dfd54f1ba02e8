import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../../lib/base/errors.js';
import type { NomadClient } from '../../../lib/nomad/client.js';
import { decodeEventLine, endOfStream } from '../../../lib/nomad/event-line.js';
import type { NomadEvent } from '../../../lib/nomad/model.js';
import { LineSplitter } from '../../../lib/nomad/ndjson.js';
import type { WireEventLine } from '../../../lib/nomad/wire.js';
import { nomadClient } from '../../support/nomad-client.js';
import { reply, ScriptedNomad } from '../../support/scripted-nomad.js';
import { readTranscript, transcriptNames } from './transcripts.js';

const NAMES = transcriptNames('events');
const DENIED = 'events/acl-no-token.ndjson';

describe('transcripts of the event stream', () => {
  let nomad: ScriptedNomad;
  let client: NomadClient;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    client = nomadClient(nomad.address);
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  /** Everything that a subscription yields until it throws. */
  async function follow(play: () => Promise<void>): Promise<{ batches: NomadEvent[][]; error: unknown }> {
    const { signal } = new AbortController();
    const subscription = client.events.subscribe({
      topics: ['Allocation', 'Evaluation', 'Job', 'Node'],
      signal,
    });
    const playing = play();
    const batches: NomadEvent[][] = [];
    try {
      for await (const batch of subscription) batches.push([...batch]);
      return { batches, error: undefined };
    } catch (error) {
      return { batches, error };
    } finally {
      await playing;
    }
  }

  it('are there', () => {
    expect(NAMES).to.include(DENIED).and.have.length.above(15);
  });

  for (const name of NAMES.filter((each) => each !== DENIED)) {
    it(`are decoded from first to last, and their end is a failure: ${name}`, async () => {
      const body = readTranscript(name);
      const { batches, error } = await follow(async () => {
        const stream = await nomad.nextStream();
        stream.open();
        for (let at = 0; at < body.length; at += 40_000) await stream.write(body.subarray(at, at + 40_000));
        stream.end();
      });
      expect(batches.map((batch) => batch.map(summaryOf))).to.deep.equal(recordedBatches(body));
      expect(error).to.be.instanceOf(ServiceError).and.to.include({ code: 'NOMAD_UNREACHABLE' });
    });

    it(`do not depend on where chunks end: ${name}`, () => {
      const body = readTranscript(name).subarray(0, 120_000);
      const whole = decoded([body]);
      const cuts = fc.array(fc.nat(body.length), { maxLength: 40 });
      fc.assert(
        fc.property(cuts, (places) => {
          const borders = [0, ...places.sort((a, b) => a - b), body.length];
          const chunks = borders.slice(1).map((end, index) => body.subarray(borders[index], end));
          expect(decoded(chunks)).to.deep.equal(whole);
        }),
        { numRuns: 5 },
      );
    });
  }

  it(`tell a refusal by status: ${DENIED} [A4-94]`, async () => {
    nomad.on('GET', '/v1/event/stream', reply({ status: 403, body: readTranscript(DENIED).toString() }));
    const { batches, error } = await follow(() => Promise.resolve());
    expect(batches).to.deep.equal([]);
    expect(error).to.be.instanceOf(ServiceError).and.to.include({ code: 'NOMAD_REFUSED' });
  });

  it(`tell a refusal in the middle of a stream: ${DENIED} [A4-94]`, async () => {
    const { batches, error } = await follow(async () => {
      const stream = await nomad.nextStream();
      stream.open();
      await stream.write(readTranscript('events/runner-life.ndjson'));
      await stream.write(readTranscript(DENIED));
      stream.end();
    });
    expect(batches).to.have.length.above(5);
    expect(error).to.be.instanceOf(ServiceError).and.to.include({ code: 'NOMAD_REFUSED' });
  });

  it('show a runner from its registration to its end', () => {
    const statuses = decoded([readTranscript('events/runner-life.ndjson')])
      .filter((event) => event.topic === 'allocation')
      .map(({ allocation }) => `${allocation.clientStatus}/${allocation.desiredStatus}`);
    expect(statuses.slice(0, 2)).to.deep.equal(['pending/run', 'running/run']);
    expect(statuses.at(-1)).to.equal('complete/stop');
  });

  it('show a restart by its count, and memory only where Nomad has the evidence', () => {
    const restarts = decoded([readTranscript('events/container-killed.ndjson')])
      .filter((event) => event.topic === 'allocation')
      .map(({ allocation }) => allocation.tasks?.['default-task'])
      .filter((task) => task?.restarts === 1);
    expect(restarts.map((task) => task?.state)).to.include.members(['pending', 'running']);
    const outOfMemory = (name: string): string[] =>
      decoded([readTranscript(name)]).flatMap((event) =>
        event.topic === 'allocation' &&
        event.allocation.tasks?.['default-task']?.events.some(({ oomKilled }) => oomKilled)
          ? [event.allocation.jobId]
          : [],
      );
    expect(outOfMemory('events/failures.ndjson')).to.include('7-oom');
    expect(outOfMemory('events/oom-inside-exec.ndjson')).to.not.include('9-c');
  });

  it('show a drained node', () => {
    const nodes = decoded([readTranscript('events/node-drained.ndjson')]).flatMap((event) =>
      event.topic === 'node' ? [event.node] : [],
    );
    expect(nodes.some(({ draining, eligible }) => draining && !eligible)).to.equal(true);
    expect(nodes.at(-1)).to.include({ draining: false, eligible: true, address: '127.0.0.1' });
  });
});

function decoded(chunks: readonly Buffer[]): NomadEvent[] {
  const splitter = new LineSplitter();
  const events = chunks.flatMap((chunk) => splitter.push(chunk)).flatMap(decodeEventLine);
  expect(endOfStream(splitter.rest()).code).to.equal('NOMAD_UNREACHABLE');
  return events;
}

type Summary = readonly [topic: string, index: number, id: unknown, modifyIndex: unknown, state: unknown];

function summaryOf(event: NomadEvent): Summary {
  const { topic, index } = event;
  switch (event.topic) {
    case 'allocation': {
      const { id, modifyIndex, clientStatus } = event.allocation;
      return [topic, index, id, modifyIndex, clientStatus];
    }
    case 'evaluation': {
      const { id, modifyIndex, status } = event.evaluation;
      return [topic, index, id, modifyIndex, status];
    }
    case 'job': {
      const { ID, ModifyIndex, Status } = event.job;
      return [topic, index, ID, ModifyIndex, Status];
    }
    case 'node': {
      const { id, modifyIndex, status } = event.node;
      return [topic, index, id, modifyIndex, status];
    }
  }
}

/** The same, read from the recording without the client's decoders. */
function recordedBatches(body: Buffer): Summary[][] {
  return body
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '' && line !== '{}')
    .map((line) =>
      (JSON.parse(line) as WireEventLine).Events.map(({ Topic, Index, Payload }) => {
        const object = Payload[Topic] as Record<string, unknown>;
        const state = object['ClientStatus'] ?? object['Status'];
        return [Topic.toLowerCase(), Index, object['ID'], object['ModifyIndex'], state] as const;
      }),
    );
}
