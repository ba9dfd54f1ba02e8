import { Agent, request as httpRequest } from 'node:http';
import WebSocket from 'ws';

export interface Message {
  readonly type: string;
  readonly data?: string | number;
  readonly id?: string;
}

/** How one command went, in milliseconds from the request. */
export interface CommandFigures {
  readonly firstOutputMs: number;
  readonly endMs: number;
  readonly outputBytes: number;
}

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/** What is right of a command; what is not given is not looked at. */
export interface Wanted {
  readonly stdout?: string;
  readonly stderr?: string;
  /** Default 0. */
  readonly exitCode?: number;
}

/** What comes of a command, in the order of its messages, whatever socket they came over. */
export class CommandWatch {
  readonly #command: string;
  readonly #wanted: Wanted;
  readonly #startedMs = performance.now();
  readonly #output = { stdout: '', stderr: '' };
  #outputBytes = 0;
  #firstOutputMs = Number.NaN;
  #endMs = Number.NaN;
  #last: Message | undefined;

  /** `wanted` as a text is the right standard output. */
  constructor(command: string, wanted: Wanted | string = {}) {
    this.#command = command;
    this.#wanted = typeof wanted === 'string' ? { stdout: wanted } : wanted;
  }

  take(message: Message): void {
    this.#last = message;
    const { type, data } = message;
    if (type === 'stdout' || type === 'stderr') {
      if (Number.isNaN(this.#firstOutputMs)) this.#firstOutputMs = performance.now() - this.#startedMs;
      const text = String(data);
      this.#outputBytes += text.length;
      if (this.#wanted[type] !== undefined) this.#output[type] += text;
    } else if (type !== 'start') {
      this.#endMs = performance.now() - this.#startedMs;
    }
  }

  /** Throws where the command did not end as it should. */
  figures(): CommandFigures {
    const { exitCode = 0 } = this.#wanted;
    const isRight = (['stdout', 'stderr'] as const).every(
      (stream) => this.#wanted[stream] === undefined || this.#output[stream].trim() === this.#wanted[stream],
    );
    if (this.#last?.type !== 'exit' || this.#last.data !== exitCode || !isRight) {
      const [last, output] = [JSON.stringify(this.#last), JSON.stringify(this.#output).slice(0, 200)];
      throw new Error(`${this.#command.slice(0, 60)} ended with ${last} and ${output}`);
    }
    return { firstOutputMs: this.#firstOutputMs, endMs: this.#endMs, outputBytes: this.#outputBytes };
  }
}

/** The least of a client that can measure: it spends as little as it can, on the processor that the service runs on. */
export class BenchClient implements Disposable {
  readonly #api: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.#api = `${url}/api/v1`;
  }

  /** Throws for any answer that is no success. */
  async request(method: string, path: string, body?: unknown): Promise<Buffer> {
    const answer = await this.send(method, path, body);
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.body.toString()}`);
  }

  send(method: string, path: string, body?: unknown): Promise<Answer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers =
      text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    return new Promise((resolve, reject) => {
      const asked = httpRequest(this.#api + path, { method, headers, agent: this.#agent }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks) }));
      });
      asked.on('error', reject);
      asked.end(text);
    });
  }

  async claim(): Promise<string> {
    const answer = await this.request('POST', '/runners', {
      executionEnvironmentId: 0,
      inactivityTimeout: 900,
    });
    return (JSON.parse(answer.toString()) as { runnerId: string }).runnerId;
  }

  async release(runnerId: string): Promise<void> {
    await this.request('DELETE', `/runners/${runnerId}`);
  }

  /** Prepares an execution and opens its socket. */
  async open(runnerId: string, command: string, interactive = true): Promise<WebSocket> {
    const body = { command, timeLimit: 600, interactive };
    const answer = await this.request('POST', `/runners/${runnerId}/execute`, body);
    const { websocketUrl } = JSON.parse(answer.toString()) as { websocketUrl: string };
    return new WebSocket(websocketUrl, { perMessageDeflate: false, skipUTF8Validation: true });
  }

  /** Runs a command to its end. `typed` is called at each output and may type. */
  async run(
    runnerId: string,
    command: string,
    wanted?: Wanted | string,
    typed?: (socket: WebSocket) => void,
  ): Promise<CommandFigures> {
    const watch = new CommandWatch(command, wanted);
    const socket = await this.open(runnerId, command);
    return new Promise((resolve, reject) => {
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString()) as Message;
        watch.take(message);
        if (message.type === 'stdout') typed?.(socket);
      });
      socket.on('error', reject);
      socket.on('close', () => {
        try {
          resolve(watch.figures());
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
