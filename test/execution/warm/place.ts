/**
 * A service with a pool on the embedded agent, for tests that misuse a session: each runs on the warm and on the cold
 * path, and none takes the cold one by accident.
 *
 * `WarmRunner.run` begins on the warm path only once every session of every runner waits for a command, so the one with a terminal
 * is there and nothing else may take it. `loop` tells which process ran a command, so a session that is used
 * again and one that was replaced look different.
 */
import { expect } from 'chai';
import type { DriverName } from '../../../lib/dev-agent/drivers.js';
import type { TaskDriver } from '../../../lib/dev-agent/driver.js';
import type { ExecuteBody } from '../../../lib/protocol/http.js';
import type { PeerMessage, ServerMessage } from '../../../lib/protocol/websocket.js';
import { skipWithoutDriver } from '../../support/needs.js';
import type { ServiceClient } from '../../support/test-service.js';
import { TestService } from '../../support/test-service.js';
import { eventually } from '../../support/waiting.js';
import type { SocketClient } from '../../support/websocket-client.js';

/** What `execution.warm` may be. */
export const PATHS = ['on', 'off'] as const;
export type Path = (typeof PATHS)[number];

/** Generous: the machine may be busy. */
export const PATIENCE_MS = 60_000;

/** Sessions that a runner gets ahead. */
const SESSIONS = 2;

export interface PlaceOptions {
  readonly path: Path;
  readonly pool?: number;
  readonly driver?: DriverName | TaskDriver;
  readonly settings?: Readonly<Record<string, string>>;
}

export class Place implements AsyncDisposable {
  readonly path: Path;
  readonly opened: TestService;
  readonly #pool: number;
  readonly #claimed = new Set<string>();

  private constructor(path: Path, opened: TestService, pool: number) {
    this.path = path;
    this.opened = opened;
    this.#pool = pool;
  }

  /** Skips the suite where this machine cannot run the driver. */
  static async open(context: Mocha.Context, options: PlaceOptions): Promise<Place> {
    const { path, pool = 1, driver = 'sandbox', settings = {} } = options;
    let opened: TestService;
    try {
      opened = await TestService.open({ SERAI_EXECUTION_WARM: path, ...settings }, driver);
    } catch (error) {
      return skipWithoutDriver(context, error);
    }
    await opened.client.openPool(pool);
    return new Place(path, opened, pool);
  }

  get client(): ServiceClient {
    return this.opened.client;
  }

  async claim(): Promise<Runner> {
    await this.client.untilIdle(this.#pool);
    const id = await this.client.claim();
    this.#claimed.add(id);
    return new Runner(this, id);
  }

  async giveBack({ id }: Runner): Promise<void> {
    this.#claimed.delete(id);
    await this.client.send('DELETE', `/runners/${id}`);
  }

  /** Resolves when every session that there has to be waits for a command; at once on the cold path. */
  async untilWarm(): Promise<void> {
    if (this.path === 'off') return;
    await this.client.untilIdle(this.#pool);
    const wanted = SESSIONS * (this.#pool + this.#claimed.size);
    const { warmSessions } = this.opened.service;
    await eventually(`${wanted} warm sessions`, () => warmSessions?.idle === wanted, PATIENCE_MS);
  }

  /** Warnings and errors of the service so far. */
  get complaints(): string[] {
    return this.opened.log.lines
      .filter(({ level }) => level === 'warn' || level === 'error')
      .map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.opened[Symbol.asyncDispose]();
  }
}

/** What a command was answered with. */
export interface Answer {
  readonly stdout: string;
  readonly stderr: string;
  readonly end: ServerMessage | undefined;
  readonly types: string[];
}

export type Meanwhile = (client: SocketClient) => unknown;

/** A claimed runner. */
export class Runner {
  readonly id: string;
  readonly place: Place;

  constructor(place: Place, id: string) {
    this.place = place;
    this.id = id;
  }

  /** Runs a command on the path of the place. `meanwhile` is called when it has started. */
  async run(command: string, body: Partial<ExecuteBody> = {}, meanwhile?: Meanwhile): Promise<Answer> {
    await this.place.untilWarm();
    return this.runNow(command, body, meanwhile);
  }

  /** Without waiting for a session: what the path is depends. */
  async runNow(command: string, body: Partial<ExecuteBody> = {}, meanwhile?: Meanwhile): Promise<Answer> {
    const client = await this.place.client.open(this.id, command, body);
    const start = (type: string): void => void (type === 'start' && meanwhile?.(client));
    client.onMessage = ({ type }) => start(type);
    client.types.forEach(start);
    await eventually(`the end of ${command}`, () => client.closeCode !== undefined, PATIENCE_MS);
    const [stdout, stderr] = [client.text('stdout'), client.text('stderr')];
    return { stdout, stderr, end: client.messages.at(-1), types: client.types };
  }

  /** Runs a command with root's rights and without a terminal, which touches no session, and resolves with its output. */
  async look(command: string): Promise<string> {
    const { stdout, end } = await this.runNow(command, { interactive: false, privilegedExecution: true });
    expect(end).to.deep.equal({ type: 'exit', data: 0 });
    return stdout;
  }

  /** The number, in the runner, of the process that starts the commands. */
  async loop(): Promise<string> {
    const { stdout, stderr, end } = await this.run('echo $PPID');
    expect([stderr, end]).to.deep.equal(['', { type: 'exit', data: 0 }]);
    expect(stdout).to.match(/^\d+\r\n$/);
    return stdout.trim();
  }

  /** Expects an ordinary answer to the next command, and nothing else with it; resolves with the loop that gave it. */
  async expectOrder(): Promise<string> {
    await this.place.untilWarm();
    return this.expectNow();
  }

  /** Likewise, on whatever path there is. */
  async expectNow(): Promise<string> {
    const { stdout, stderr, end } = await this.runNow('echo "$PPID out"; echo err >&2; exit 7');
    expect([stdout.replace(/^\d+/, ''), stderr, end]).to.deep.equal([
      ' out\r\n',
      'err\n',
      { type: 'exit', data: 7 },
    ]);
    return stdout.split(' ')[0] ?? '';
  }

  /**
   * Holds the loop of the next command against the one before: `reused` or `replaced` on the warm path; on the cold path
   * each command has its own.
   */
  async expectNext(before: string, what: 'reused' | 'replaced'): Promise<void> {
    const after = await this.expectOrder();
    const isReused = this.place.path === 'on' && what === 'reused';
    expect(after === before ? 'reused' : 'replaced').to.equal(isReused ? 'reused' : 'replaced');
  }
}

/** Exit with this code. */
export function exit(code: number): PeerMessage {
  return { type: 'exit', data: code };
}
