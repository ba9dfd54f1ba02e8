import { deadline, orAbort } from '../base/abort.js';
import { ServiceError } from '../base/errors.js';
import type { ProgramSignal } from '../base/program-signals.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { OwnedBy } from '../shell/ownership.js';
import { parseSignalResult, signalScript } from '../shell/signal-tree.js';
import type { KillDeps } from './kill.js';
import { killTree } from './kill.js';
import { runScript } from './script-exec.js';

/** A signal that could not be sent within this time is given up. */
const SIGNAL_MS = 5000;

export interface ProgramSignalRequest {
  readonly target: OwnedBy;
  readonly name: ProgramSignal;
  /** The command runs below a tool that stays as a parent. */
  readonly toolStays: boolean;
}

/**
 * Sends a signal to all processes of an execution, by an exec of its own. Rejects where it may not have reached all of
 * them. It is not tried again, since a process could get it twice; SIGKILL can do no harm twice, so that one is.
 */
export async function sendSignal(
  deps: KillDeps,
  runner: ClaimedRunner,
  { target, name, toolStays }: ProgramSignalRequest,
): Promise<void> {
  if (name === 'SIGKILL') {
    const outcome = await killTree(deps, runner, { target, others: [], sweep: false }, SIGNAL_MS);
    if (outcome.kind !== 'clean') throw notSent(name, outcome);
    return;
  }
  using limit = deadline(deps.clock, SIGNAL_MS, 'EXECUTION_FAILED', 'sending a signal took too long');
  const signal = AbortSignal.any([limit.signal, runner.runnerSignal]);
  const { allocationId } = runner;
  const text = signalScript({ allocationId, target, signal: name, toolStays });
  const result = await orAbort(runScript(deps, runner, { text, parse: parseSignalResult, signal }), signal);
  if (result.failed > 0 || result.sent === 0) throw notSent(name, result);
}

function notSent(name: ProgramSignal, outcome: object): ServiceError {
  return new ServiceError('EXECUTION_FAILED', `${name} did not reach every process`, {
    details: { outcome },
  });
}

/**
 * The signals of one execution, one after the other. As with those of the kernel, one that waits for its turn is not
 * sent once more: however many a client asks for, few execs are opened.
 */
export class SignalQueue {
  readonly #send: (name: ProgramSignal) => Promise<void>;
  readonly #waiting = new Map<ProgramSignal, Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(send: (name: ProgramSignal) => Promise<void>) {
    this.#send = send;
  }

  /** Settles as the sending does. */
  add(name: ProgramSignal): Promise<void> {
    const waiting = this.#waiting.get(name);
    if (waiting) return waiting;
    const sent = this.#last.then(() => {
      this.#waiting.delete(name);
      return this.#send(name);
    });
    this.#waiting.set(name, sent);
    this.#last = sent.catch(() => undefined); // told to whoever asked for it
    return sent;
  }

  /** Resolves once all that was added so far is over. */
  idle(): Promise<void> {
    return this.#last;
  }
}
