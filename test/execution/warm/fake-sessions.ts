import { ServiceError } from '../../../lib/base/errors.js';
import type {
  Aftermath,
  CommandEnd,
  CommandEvents,
  CommandSession,
  SessionOptions,
} from '../../../lib/execution/session.js';
import type { CommandRequest } from '../../../lib/shell/request.js';
import type { RunnerUser } from '../../../lib/shell/frames.js';

const USER: RunnerUser = { tool: 'setpriv', name: 'user', uid: '1000', gid: '1000', home: '/home/user' };

/** A session that a test plays. Its checks go well, and it is clean after each command, unless told otherwise. */
export class FakeSession implements CommandSession {
  readonly root = undefined;
  readonly ended: Promise<void>;
  readonly options: SessionOptions;
  readonly requests: CommandRequest[] = [];
  /** What its commands end with, in order; then with 0. */
  ends: CommandEnd[] = [];
  /** What `settle` says, in order; then `clean`. */
  aftermaths: (Aftermath | Promise<Aftermath>)[] = [];
  closed = 0;
  destroyed = 0;
  #end: () => void = () => undefined;

  constructor(options: SessionOptions) {
    this.options = options;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** An exec of it ends. */
  end(): void {
    this.#end();
  }

  run(request: CommandRequest, events: CommandEvents): Promise<CommandEnd> {
    this.requests.push(request);
    if (request.user.kind === 'first-of') events.user(USER);
    return Promise.resolve(this.ends.shift() ?? { kind: 'exited', exitCode: 0 });
  }

  settle(): Promise<Aftermath> {
    return Promise.resolve(this.aftermaths.shift() ?? 'clean');
  }

  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }

  destroy(): void {
    this.destroyed += 1;
  }

  write(): Promise<void> {
    return Promise.resolve();
  }

  closeStdin(): void {}
  resize(): void {}
  pause(): void {}
  resume(): void {}
  flush(): void {}
}

type Plan = (session: FakeSession) => FakeSession | Promise<FakeSession>;

/** Opens fake sessions, and keeps them in order. */
export class FakeOpenings {
  readonly sessions: FakeSession[] = [];
  /** What becomes of the next openings, in order; then of all. */
  readonly plans: Plan[] = [];
  plan: Plan = (session) => session;

  readonly open = async (_deps: unknown, options: SessionOptions): Promise<CommandSession> => {
    const session = new FakeSession(options);
    this.sessions.push(session);
    return (this.plans.shift() ?? this.plan)(session);
  };

  get last(): FakeSession {
    const last = this.sessions.at(-1);
    if (!last) throw new Error('no session was opened');
    return last;
  }
}

/** An opening that comes to nothing until it is given up. */
export function hanging(session: FakeSession): Promise<FakeSession> {
  return new Promise((_resolve, reject) => {
    const { signal } = session.options;
    signal.addEventListener('abort', () => reject(new ServiceError('STOPPED', 'given up')), { once: true });
  });
}
