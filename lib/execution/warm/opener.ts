import type { ExecutionId, RunnerId } from '../../base/ids.js';
import { newExecutionId } from '../../base/ids.js';
import type { Logger } from '../../base/log.js';
import type { Environment } from '../../environments/environment.js';
import type { BookedRun } from '../runner-book.js';
import { concernsEnvironment, refusalSentence } from '../sentences.js';
import type { CommandSession } from '../session.js';
import type { SessionFolders } from '../session-folders.js';
import type { CheckDeps, Checked, OpenSession } from './check.js';
import { openChecked } from './check.js';
import { Replacements } from './replacements.js';
import type { Slot, WarmKind, WarmRunner } from './warm-runner.js';

export interface OpenerDeps extends CheckDeps {
  readonly log: Logger;
  readonly folders: SessionFolders;
  readonly open: Readonly<Record<WarmKind, OpenSession>>;
  /** As `RunnerManager.reportFitness`. */
  readonly onFitness: (environment: Environment, reason: string | undefined) => void;
  /** As `RunnerManager.confirmIdle`: an idle runner answers as it has to. */
  readonly confirmIdle: (id: RunnerId) => void;
  /** As `RunnerManager.replaceIdle`: gives an idle runner up; false where it is not idle. */
  readonly replaceIdle: (id: RunnerId, reason: string) => boolean;
}

/** What an opening led to. */
export type Opened =
  | { readonly kind: 'session'; readonly session: CommandSession }
  /** Worth another attempt. */
  | { readonly kind: 'later' }
  /** The image cannot have such a session, or the runner is given up. */
  | { readonly kind: 'never' };

/** How often a runner may answer wrongly. */
const MAX_WRONG = 2;
/** How often a session may be of use for a single command until the image is taken for the cause. */
const MAX_SINGLES = 2;

/**
 * Opens and checks one session, and draws the conclusions: what the image can do, who its user is, and whether the runner
 * has to be replaced. That happens when it answered wrongly twice in a row, to one runner of an environment at a time,
 * and never to one that is in use.
 */
export class Opener {
  readonly #deps: OpenerDeps;
  readonly #replacements = new Replacements();

  constructor(deps: OpenerDeps) {
    this.#deps = deps;
  }

  /** `came` is the number of the runner that came last. Never rejects. */
  async open(runner: WarmRunner, slot: Slot, came: number, signal: AbortSignal): Promise<Opened> {
    const { book } = runner;
    const booked: BookedRun = { id: this.#newId(), root: undefined };
    await book?.enter(booked, true);
    try {
      const checked = await this.#check(runner, slot, signal);
      if (checked.kind === 'ready' && signal.aborted) checked.session.destroy();
      return signal.aborted ? { kind: 'never' } : this.#conclude(runner, slot, checked, came);
    } finally {
      await book?.leave(booked);
    }
  }

  #newId(): ExecutionId {
    return newExecutionId(this.#deps.randomness);
  }

  async #check(runner: WarmRunner, slot: Slot, signal: AbortSignal): Promise<Checked> {
    const { open, folders } = this.#deps;
    const checked = await openChecked(this.#deps, {
      runner,
      environment: runner.environment,
      open: open[slot.kind],
      user: runner.user ?? runner.book?.user,
      folder: folders.next(),
      keep: true,
      sweeping: runner.isSwept ? undefined : folders.names,
      signal,
    });
    if (checked.kind !== 'unavailable') runner.isSwept = true;
    return checked;
  }

  #conclude(runner: WarmRunner, slot: Slot, checked: Checked, came: number): Opened {
    const { log, onFitness, confirmIdle } = this.#deps;
    const { id, environment } = runner;
    if (checked.kind === 'unavailable') {
      log.debug('a session could not be opened ahead', { runnerId: id, error: checked.error });
      return { kind: 'later' };
    }
    this.#replacements.checked(environment.id, runner.number);
    switch (checked.kind) {
      case 'ready':
      case 'single':
        slot.backoff.reset();
        slot.wrong = 0;
        runner.user ??= checked.user;
        if (runner.book) runner.book.user ??= checked.user;
        onFitness(environment, undefined);
        if (!runner.book) confirmIdle(id);
        if (checked.kind === 'ready') return { kind: 'session', session: checked.session };
        // A runner that is busy may be too slow once.
        slot.singles += 1;
        return { kind: slot.singles < MAX_SINGLES ? 'later' : 'never' };
      case 'refused':
        // A client may have changed the runner, which says nothing of the image.
        if (concernsEnvironment(checked.refusal) && !runner.book) {
          onFitness(environment, refusalSentence(checked.refusal));
        }
        return { kind: 'never' };
      case 'wrong':
        return this.#answeredWrongly(runner, slot, checked.what, came);
    }
  }

  #answeredWrongly(runner: WarmRunner, slot: Slot, what: string, came: number): Opened {
    const { log, replaceIdle } = this.#deps;
    const { id, environment, book } = runner;
    slot.wrong += 1;
    log.warn('a runner did not answer a check as it has to', { runnerId: id, what, times: slot.wrong });
    const isToGo = slot.wrong >= MAX_WRONG && !book && this.#replacements.isFree(environment.id);
    if (!isToGo || !replaceIdle(id, `a runner was replaced, because commands do not run in it: ${what}`)) {
      return { kind: 'later' };
    }
    this.#replacements.begin(environment.id, came);
    return { kind: 'never' };
  }
}
