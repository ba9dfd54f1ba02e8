import { ServiceError } from '../../../lib/base/errors.js';
import type { EventSubscription } from '../../../lib/nomad/api.js';
import type { NomadClient } from '../../../lib/nomad/client.js';
import type { NomadEvent } from '../../../lib/nomad/model.js';
import { FakeClock } from '../../support/fake-clock.js';
import { nomadClient } from '../../support/nomad-client.js';
import { ScriptedNomad } from '../../support/scripted-nomad.js';
import type { ScriptedCall } from '../../support/scripted-nomad.js';

/**
 * What tests of the event stream share: lines with one event, a reader, and a client whose one server is scripted.
 */
/** A line with one event. */
export function line(index: number, jobId = 'j'): object {
  const Evaluation = { ID: `e${index}`, JobID: jobId, Status: 'pending', CreateIndex: 1, ModifyIndex: index };
  return { Index: index, Events: [{ Topic: 'Evaluation', Index: index, Payload: { Evaluation } }] };
}

/** Counts how often somebody looks at it: the only trace that a heartbeat leaves. */
export class CountingClock extends FakeClock {
  reads = 0;

  override monotonicMs(): number {
    this.reads += 1;
    return super.monotonicMs();
  }
}

/** Reads in the background what a subscription yields. */
export class Reader {
  readonly events: NomadEvent[] = [];
  /** The failure, or undefined where the iterator returned. */
  readonly end: Promise<unknown>;

  constructor(subscription: EventSubscription) {
    this.end = this.#read(subscription).catch((error: unknown) => error);
  }

  get indexes(): number[] {
    return this.events.map(({ index }) => index);
  }

  async #read(subscription: EventSubscription): Promise<void> {
    for await (const batch of subscription) this.events.push(...batch);
  }
}

/** One scripted server, a client of it, and a caller that may leave. */
export class EventBench {
  readonly clock = new CountingClock();
  readonly controller = new AbortController();
  readonly nomad: ScriptedNomad;
  readonly client: NomadClient;

  private constructor(nomad: ScriptedNomad) {
    this.nomad = nomad;
    this.client = nomadClient(nomad.address, {
      clock: this.clock,
      token: 'a-token',
      namespace: 'runners',
    });
  }

  static async open(): Promise<EventBench> {
    return new EventBench(await ScriptedNomad.start());
  }

  async close(): Promise<void> {
    await this.client.stop();
    await this.nomad.stop();
  }

  subscribe(from: NomadClient = this.client): EventSubscription {
    return from.events.subscribe({ topics: ['Allocation', 'Node'], signal: this.controller.signal });
  }

  /** Subscribes, reads, and waits for the server's side of it. */
  async follow(): Promise<[Reader, ScriptedCall, EventSubscription]> {
    const subscription = this.subscribe();
    return [new Reader(subscription), await this.nomad.nextStream(), subscription];
  }

  /** The caller leaves. */
  stop(): void {
    this.controller.abort(new ServiceError('STOPPED', 'over'));
  }
}
