/**
 * One client: claims a runner, uses it in some way, gives it back or vanishes; again and again. What it is answered is
 * held against what it may be answered.
 *
 *   claim ──▶ use, some times ──▶ return, or vanish
 *
 * Every use carries a nonce that must come back, to this client and whole. A fault may end a use with a failure, and
 * never with a wrong answer: not with an exit that the command did not have, not with another one's bytes.
 */
import { WebSocket } from 'ws';
import { SERAI_V1 } from '../../lib/protocol/subprotocols.js';
import type { Message } from './conversation.js';
import { Conversation, isEnd } from './conversation.js';
import type { Dice } from './dice.js';
import type { History } from './history.js';
import type { ChaosReplica } from './stack.js';

/** An answer is due within 5 s; the machine of a test is busy. */
const ANSWER_MS = 6_500;
/** A file operation is not refused while its runner is slow and Nomad answers: for 15 s at most. */
const FILES_MS = 20_000;
/** When a client stops waiting: for a replica that is frozen it may be in vain. */
const PATIENCE_MS = 25_000;
/** Runners of clients that vanished end after this. */
export const INACTIVITY_SECONDS = 6;

export interface ClientDeps {
  readonly name: string;
  readonly dice: Dice;
  readonly history: History;
  readonly replicas: readonly [ChaosReplica, ...ChaosReplica[]];
  readonly environments: readonly [number, ...number[]];
  readonly pause: (ms: number) => Promise<void>;
}

const USES = ['execute', 'execute', 'session', 'write', 'read', 'list', 'leave'] as const;

/** An answer, or that none came because the connection broke or nobody was there. */
type Answer = { readonly status: number; readonly text: string } | undefined;

export class ChaosClient {
  readonly #deps: ClientDeps;
  /** Content of the file that this client has surely written in its runner. */
  #written: string | undefined;

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { dice, pause } = this.#deps;
    while (!signal.aborted) {
      await pause(dice.between(0, 600));
      if (signal.aborted) return;
      const runner = await this.#claim();
      if (runner === undefined) continue;
      this.#written = undefined;
      const uses = dice.between(0, 4);
      let isGone = false;
      for (let use = 0; use < uses && !isGone; use += 1) isGone = await this.#use(runner);
      if (dice.chance(0.2)) {
        this.#deps.history.note(runner, 'its client vanished');
        this.#deps.history.count('ends', 'vanished');
      } else await this.#return(runner);
    }
  }

  async #claim(): Promise<string | undefined> {
    const { dice, history, environments, name } = this.#deps;
    const leavesAfterMs = dice.chance(0.08) ? dice.between(0, 60) : undefined;
    const body = {
      executionEnvironmentId: dice.pick(environments),
      inactivityTimeout: INACTIVITY_SECONDS,
    };
    const answer = await this.#send('claims', 'POST', '/runners', { body, leavesAfterMs });
    if (answer?.status !== 200) return undefined;
    const { runnerId } = JSON.parse(answer.text) as { runnerId: string };
    history.claimed(runnerId, name);
    return runnerId;
  }

  /** True where the runner is gone. */
  async #use(runner: string): Promise<boolean> {
    const { dice } = this.#deps;
    switch (dice.pick(USES)) {
      case 'execute':
        return this.#execute(runner, false);
      case 'leave':
        return this.#execute(runner, true);
      case 'session':
        return this.#session(runner);
      case 'write':
        return this.#write(runner);
      case 'read':
        return this.#read(runner);
      case 'list':
        return this.#list(runner);
    }
  }

  async #execute(runner: string, leaves: boolean): Promise<boolean> {
    const { dice, history, pause } = this.#deps;
    const [nonce, code, interactive] = [dice.nonce(), dice.between(0, 3), dice.chance(0.7)];
    const naps = leaves ? 'sleep 30; ' : dice.chance(0.2) ? `sleep 0.${dice.between(1, 9)}; ` : '';
    const command = `${naps}echo ${nonce}; exit ${code}`;
    const body = { command, timeLimit: 60, interactive };
    const answer = await this.#send('execute', 'POST', `/runners/${runner}/execute`, { body });
    if (answer?.status !== 200) return answer?.status === 410;
    const { websocketUrl } = JSON.parse(answer.text) as { websocketUrl: string };
    const socket = new Conversation(new WebSocket(websocketUrl));
    if (leaves) {
      await pause(dice.between(0, 300));
      socket.vanish();
      history.count('executions', 'left');
      return false;
    }
    await socket.over(PATIENCE_MS);
    this.#judge(runner, { nonce, code }, socket.messages);
    return false;
  }

  async #session(runner: string): Promise<boolean> {
    const { dice, replicas } = this.#deps;
    const url = `${dice.pick(replicas).url.replace('http', 'ws')}/api/v1/runners/${runner}/session`;
    const socket = new Conversation(new WebSocket(url, [SERAI_V1]));
    const commands = Array.from({ length: dice.between(1, 4) }, (_, id) => ({
      id: String(id),
      nonce: dice.nonce(),
      code: dice.between(0, 3),
    }));
    const vanishes = dice.chance(0.15);
    for (const { id, nonce, code } of commands) {
      socket.say({ type: 'exec', id, command: `echo ${nonce}; exit ${code}` });
    }
    if (vanishes) {
      await this.#deps.pause(dice.between(0, 100));
      socket.vanish();
      return false;
    }
    await socket.until((messages) => messages.filter(isEnd).length >= commands.length, PATIENCE_MS);
    socket.vanish();
    for (const command of commands) {
      const own = socket.messages.filter((message) => message.id === command.id);
      if (own.length > 0) this.#judge(runner, command, own);
    }
    return socket.status === 410;
  }

  /** Whether an end is one that the command may have had. */
  #judge(runner: string, told: { nonce: string; code: number }, messages: readonly Message[]): void {
    const { history } = this.#deps;
    const { nonce, code } = told;
    const ends = messages.filter(isEnd);
    const text = messages.map((message) => (message.type === 'stdout' ? String(message.data) : '')).join('');
    const end = ends[0];
    history.count('executions', end ? (end.type === 'exit' ? 'exited' : end.type) : 'cut off');
    history.note(runner, `execution of ${nonce}: ${JSON.stringify(end ?? 'no end')}`);
    if (ends.length > 1) history.violate(`an execution ended ${ends.length} times`, runner);
    const isWrong = text.trim() !== nonce && !nonce.startsWith(text.trim());
    if (isWrong) history.violate(`${JSON.stringify(text)} came in place of ${nonce}`, runner);
    if (end?.type !== 'exit') return;
    if (end.data !== code) history.violate(`exit ${String(end.data)} came in place of ${code}`, runner);
    if (text.trim() !== nonce) history.violate(`an exit without all of the output: ${text}`, runner);
  }

  async #write(runner: string): Promise<boolean> {
    const nonce = this.#deps.dice.nonce();
    const content = Buffer.from(nonce).toString('base64');
    const before = this.#written;
    // Until it is known to be written, any of the two may be there.
    this.#written = undefined;
    const body = { copy: [{ path: 'mine', content }] };
    const answer = await this.#send('files', 'PATCH', `/runners/${runner}/files`, { body });
    if (answer?.status === 204) this.#written = nonce;
    else if (answer?.status === 410) this.#written = before;
    return answer?.status === 410;
  }

  async #read(runner: string): Promise<boolean> {
    const { history } = this.#deps;
    const written = this.#written;
    const answer = await this.#send('files', 'GET', `/runners/${runner}/files/raw?path=mine`);
    if (written === undefined) return answer?.status === 410;
    if (answer?.status === 200 && answer.text !== written) {
      history.violate(`the file holds ${answer.text} in place of ${written}`, runner);
    }
    if (answer?.status === 424) history.violate('a file that was written is gone', runner);
    return answer?.status === 410;
  }

  async #list(runner: string): Promise<boolean> {
    const answer = await this.#send('files', 'GET', `/runners/${runner}/files?path=./`);
    if (answer?.status === 200) {
      const { files } = JSON.parse(answer.text) as { files: { name: string }[] };
      const others = files.filter(({ name }) => name !== 'mine' && name !== './mine');
      if (others.length > 0)
        this.#deps.history.violate(`there are files of others: ${JSON.stringify(others)}`, runner);
    }
    return answer?.status === 410;
  }

  /** Until it is known to be gone, or for so long that it ends by itself. */
  async #return(runner: string): Promise<void> {
    const { history, pause } = this.#deps;
    for (let attempt = 0; attempt < 6; attempt += 1) {
      const answer = await this.#send('returns', 'DELETE', `/runners/${runner}`);
      history.note(runner, `returned: ${answer?.status ?? 'no answer'}`);
      if (answer?.status === 204 || answer?.status === 410) {
        history.count('ends', answer.status === 204 ? 'returned' : 'gone before');
        return;
      }
      await pause(1_000);
    }
    history.count('ends', 'given up');
  }

  /** Sends a request to any replica, and holds its answer against the time limit and the list of refusals. */
  async #send(
    group: string,
    method: string,
    route: string,
    options: { readonly body?: object; readonly leavesAfterMs?: number | undefined } = {},
  ): Promise<Answer> {
    const { dice, replicas, history } = this.#deps;
    const replica = dice.pick(replicas);
    const begunMs = performance.now();
    const { body, leavesAfterMs = PATIENCE_MS } = options;
    let answer: Answer;
    try {
      const response = await fetch(`${replica.url}/api/v1${route}`, {
        method,
        headers: { 'content-type': 'application/json' },
        signal: AbortSignal.timeout(leavesAfterMs),
        ...(body && { body: JSON.stringify(body) }),
      });
      answer = { status: response.status, text: await response.text() };
    } catch {
      answer = undefined; // it left, or nobody was there
    }
    const tookMs = performance.now() - begunMs;
    const wasThere = replica.wasThereSince(begunMs);
    const reason = answer && answer.status >= 400 ? codeOf(answer.text) : '';
    history.count(group, answer ? `${answer.status}${reason}` : options.leavesAfterMs ? 'left' : 'no answer');
    const what = `${method} ${route.replace(/[0-9a-f-]{30,}/, ':id')} at ${replica.name}`;
    if (wasThere && tookMs > (group === 'files' ? FILES_MS : ANSWER_MS)) {
      history.violate(`${what} took ${Math.round(tookMs)} ms`, runnerIn(route));
    }
    if (wasThere && answer === undefined && options.leavesAfterMs === undefined && group !== 'files') {
      history.violate(`${what} was not answered`, runnerIn(route));
    }
    if (answer && answer.status >= 400 && !answer.text.includes('"message"')) {
      history.violate(`${what} was refused with ${answer.status} and no reason`, runnerIn(route));
    }
    return answer;
  }
}

function codeOf(text: string): string {
  try {
    const { errorCode } = JSON.parse(text) as { errorCode?: string };
    return errorCode === undefined ? '' : ` ${errorCode}`;
  } catch {
    return ' (no JSON)';
  }
}

function runnerIn(route: string): string | undefined {
  return /\/runners\/([^/]+)/.exec(route)?.[1];
}
