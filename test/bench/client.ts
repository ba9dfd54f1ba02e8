import WebSocket from 'ws';

interface Message {
  readonly type: string;
  readonly data?: string | number;
}

/** How one command went, in milliseconds from the request. */
export interface CommandFigures {
  readonly firstOutputMs: number;
  readonly endMs: number;
  readonly outputBytes: number;
}

/** The least of a client that can measure. */
export class BenchClient {
  readonly #api: string;

  constructor(url: string) {
    this.#api = `${url}/api/v1`;
  }

  async request(method: string, path: string, body?: unknown): Promise<Response> {
    const answer = await fetch(this.#api + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok)
      throw new Error(`${method} ${path} was answered with ${answer.status}: ${await answer.text()}`);
    return answer;
  }

  async claim(): Promise<string> {
    const answer = await this.request('POST', '/runners', {
      executionEnvironmentId: 0,
      inactivityTimeout: 300,
    });
    return ((await answer.json()) as { runnerId: string }).runnerId;
  }

  async release(runnerId: string): Promise<void> {
    await this.request('DELETE', `/runners/${runnerId}`);
  }

  /** Runs a command to its end. `typed` is asked at each output what to type next. */
  async run(
    runnerId: string,
    command: string,
    wanted?: string,
    typed?: (socket: WebSocket) => void,
  ): Promise<CommandFigures> {
    const startedMs = performance.now();
    const answer = await this.request('POST', `/runners/${runnerId}/execute`, { command, timeLimit: 120 });
    const { websocketUrl } = (await answer.json()) as { websocketUrl: string };
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(websocketUrl, { perMessageDeflate: false });
      let output = '';
      let outputBytes = 0;
      let firstOutputMs = Number.NaN;
      let endMs = Number.NaN;
      let last: Message | undefined;
      socket.on('message', (data: Buffer) => {
        last = JSON.parse(data.toString()) as Message;
        if (last.type === 'stdout') {
          if (Number.isNaN(firstOutputMs)) firstOutputMs = performance.now() - startedMs;
          outputBytes += String(last.data).length;
          if (wanted !== undefined) output += String(last.data);
          typed?.(socket);
        } else if (last.type === 'exit') endMs = performance.now() - startedMs;
      });
      socket.on('error', reject);
      socket.on('close', () => {
        const right =
          last?.type === 'exit' && last.data === 0 && (wanted === undefined || output.trim() === wanted);
        if (right) resolve({ firstOutputMs, endMs, outputBytes });
        else
          reject(
            new Error(
              `${command.slice(0, 60)} ended with ${JSON.stringify(last)} and ${JSON.stringify(output.slice(0, 200))}`,
            ),
          );
      });
    });
  }
}
