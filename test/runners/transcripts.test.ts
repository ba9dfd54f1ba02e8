import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { parseRunnerId } from '../../lib/base/ids.js';
import type { Allocation, NomadEvent } from '../../lib/nomad/model.js';
import { decodeEventLine } from '../../lib/nomad/event-line.js';
import type { Effect, Observation } from '../../lib/runners/observation.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import { commit, createState } from '../../lib/runners/state.js';
import { anEnvironment } from '../support/environments.js';
import { Truth } from '../support/truth.js';

/** What a real server said, in order. */
function eventsOf(name: string): NomadEvent[] {
  const file = new URL(`../fixtures/nomad/events/${name}.ndjson`, import.meta.url);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim().startsWith('{'))
    .flatMap((line) => {
      try {
        return decodeEventLine(line);
      } catch {
        return []; // the last line of a server that was killed
      }
    })
    .map(asOfRunner);
}

const names = new Map<string, RunnerId>();

/** The jobs of the transcripts that have names of their own, as if they were runners. */
function runnerName(jobId: string): RunnerId {
  const known = parseRunnerId(jobId)?.runnerId ?? names.get(jobId);
  if (known) return known;
  const name = newId();
  names.set(jobId, name);
  return name;
}

function asOfRunner(event: NomadEvent): NomadEvent {
  if (event.topic === 'allocation') {
    return { ...event, allocation: { ...event.allocation, jobId: runnerName(event.allocation.jobId) } };
  }
  if (event.topic !== 'evaluation') return event;
  return { ...event, evaluation: { ...event.evaluation, jobId: runnerName(event.evaluation.jobId) } };
}

/** Hears a transcript; every job that is looked at is there, for as long as nothing said otherwise. */
class Listener {
  readonly state = createState();
  readonly environment = anEnvironment({ id: 0, prewarmingPoolSize: 1_000 });
  readonly #truth = new Truth();

  constructor() {
    this.#truth.setTemplate(this.environment);
    this.observe({ kind: 'listing', listing: this.#truth.listing(0) });
  }

  observe(observation: Observation): void {
    const context = {
      now: 0,
      startTimeoutMs: 300_000,
      orphanTimeoutMs: 600_000,
      random: () => 0,
      newRunnerId: () => newId(),
    };
    const { changes, effects } = reconcile(this.state, observation, context);
    commit(this.state, changes);
    for (const effect of effects) this.#answer(effect, observation);
  }

  hear(event: NomadEvent): void {
    if (event.topic === 'allocation') this.observe({ kind: 'allocation', allocation: event.allocation });
    if (event.topic === 'evaluation') this.observe({ kind: 'evaluation', evaluation: event.evaluation });
    if (event.topic === 'node') this.observe({ kind: 'node', node: event.node });
  }

  idle(): Set<string> {
    return new Set(this.generations().map(([id]) => id));
  }

  /** Ids and generations of what is idle. */
  generations(): [string, number][] {
    return [...(this.state.members.get(this.environment.id)?.values() ?? [])]
      .filter((runner) => runner.phase.name === 'idle')
      .map(({ id, generation }) => [id, generation]);
  }

  #answer(effect: Effect, cause: Observation): void {
    if (effect.kind === 'purge') this.observe({ kind: 'purged', id: effect.id });
    if (effect.kind !== 'inspect' || cause.kind !== 'allocation') return;
    const spec = this.environment.specHash;
    const says = { used: undefined, writtenAt: 0, stopped: false, ended: false, modifyIndex: 0 };
    const job = { id: effect.id, environmentId: this.environment.id, spec, ...says };
    this.observe({ kind: 'inspected', id: effect.id, job, allocations: [cause.allocation] });
  }
}

let ids = 0;
function newId(): RunnerId {
  ids += 1;
  return `0-00000000-0000-4000-8000-${String(ids).padStart(12, '0')}` as RunnerId;
}

/** What was heard, read in the plainest way: the newest allocation that is wanted and not ended, if it runs. */
class Heard {
  readonly #allocations = new Map<string, Allocation>();
  readonly #purged = new Set<string>();

  hear(event: NomadEvent): void {
    if (event.topic === 'evaluation' && event.evaluation.triggeredBy === 'job-deregister') {
      this.#purged.add(event.evaluation.jobId);
    }
    if (event.topic !== 'allocation') return;
    const known = this.#allocations.get(event.allocation.id);
    if (known && known.modifyIndex >= event.allocation.modifyIndex) return;
    this.#allocations.set(event.allocation.id, event.allocation);
  }

  running(): Set<string> {
    const newest = new Map<string, Allocation>();
    for (const allocation of this.#allocations.values()) {
      const { jobId, desiredStatus, clientStatus, createIndex } = allocation;
      const isAlive = desiredStatus === 'run' && ['pending', 'running'].includes(clientStatus);
      if (!isAlive || this.#purged.has(jobId)) continue;
      if (createIndex > (newest.get(jobId)?.createIndex ?? 0)) newest.set(jobId, allocation);
    }
    const running = [...newest.values()].filter(({ clientStatus }) => clientStatus === 'running');
    return new Set(running.map(({ jobId }) => jobId));
  }
}

describe('the reconciler on what a real Nomad said', () => {
  for (const name of ['runner-life', 'node-drained', 'failures', 'container-killed', 'config-group-update']) {
    it(`takes for idle at each moment of ${name} exactly what runs`, () => {
      const listener = new Listener();
      const heard = new Heard();
      let most = 0;
      for (const event of eventsOf(name)) {
        listener.hear(event);
        heard.hear(event);
        expect(listener.idle()).to.deep.equal(heard.running());
        most = Math.max(most, heard.running().size);
      }
      expect(most).to.be.greaterThan(0);
    });
  }

  it('leaves what runs alone when the agent was killed and replays its past [A1-10]', () => {
    const listener = new Listener();
    const heard = new Heard();
    const events = eventsOf('agent-killed-after');
    for (const event of events) {
      listener.hear(event);
      heard.hear(event);
    }
    const before = listener.generations();
    expect(before.length).to.be.greaterThan(0);
    for (const event of events) listener.hear(event);
    expect(listener.generations()).to.deep.equal(before);
    expect(listener.idle()).to.deep.equal(heard.running());
  });
});
