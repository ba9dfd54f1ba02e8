import { ServiceError } from '../base/errors.js';
import type { NomadEvent } from './model.js';

type Batch = readonly NomadEvent[];
type Step = IteratorResult<Batch, undefined>;

export interface EventQueueOptions {
  /** With more events than this there is no room, until half of them are taken. */
  readonly highWater: number;
  /** Called when the consumer leaves before the end. */
  readonly onLeave: () => void;
}

interface Waiting {
  readonly resolve: (step: Step) => void;
  readonly reject: (error: ServiceError) => void;
}

/**
 * Batches on their way from the reader of the stream to the one consumer of the iterator. Nothing is dropped: what was
 * read before a failure is delivered before the failure.
 */
export class EventQueue implements AsyncIterableIterator<Batch, undefined> {
  readonly #options: EventQueueOptions;
  readonly #batches: Batch[] = [];
  /** Index of the next batch; taken ones are cut off now and then, not one by one. */
  #next = 0;
  #events = 0;
  #end: { readonly error?: ServiceError } | undefined;
  #consumer: Waiting | undefined;
  #giveRoom: (() => void) | undefined;

  constructor(options: EventQueueOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(batch: Batch): void {
    if (this.#end) return;
    const consumer = this.#takeConsumer();
    if (consumer) {
      consumer.resolve({ done: false, value: batch });
      return;
    }
    this.#batches.push(batch);
    this.#events += batch.length;
  }

  get isFull(): boolean {
    return this.#events > this.#options.highWater;
  }

  /** Resolves when the consumer has taken half of what fills the queue. For one reader at a time. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#giveRoom = resolve;
    });
  }

  /** Ends the queue behind what is in it; the first end counts. */
  fail(error: ServiceError): void {
    if (this.#end) return;
    this.#end = { error };
    this.#takeConsumer()?.reject(error);
  }

  /** Ends the queue at once, with nothing more to deliver. */
  close(): void {
    this.#end = {};
    this.#batches.length = 0;
    this.#next = 0;
    this.#events = 0;
    this.#takeConsumer()?.resolve({ done: true, value: undefined });
  }

  /** Rejects with ILLEGAL_STATE while an earlier call waits: there is one consumer. */
  next(): Promise<Step> {
    const batch = this.#takeBatch();
    if (batch) return Promise.resolve({ done: false, value: batch });
    if (this.#end) {
      const { error } = this.#end;
      this.#end = {}; // an iterator that threw is done
      return error ? Promise.reject(error) : Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve, reject) => {
      if (this.#consumer) reject(new ServiceError('ILLEGAL_STATE', 'an event stream has one consumer'));
      else this.#consumer = { resolve, reject };
    });
  }

  return(): Promise<Step> {
    this.close();
    this.#options.onLeave();
    return Promise.resolve({ done: true, value: undefined });
  }

  #takeBatch(): Batch | undefined {
    const batch = this.#batches[this.#next];
    if (!batch) return undefined;
    this.#next += 1;
    this.#events -= batch.length;
    if (this.#next === this.#batches.length || this.#next === 1024) {
      this.#batches.splice(0, this.#next);
      this.#next = 0;
    }
    if (this.#events <= this.#options.highWater / 2) {
      this.#giveRoom?.();
      this.#giveRoom = undefined;
    }
    return batch;
  }

  #takeConsumer(): Waiting | undefined {
    const consumer = this.#consumer;
    this.#consumer = undefined;
    return consumer;
  }
}
