/**
 * The public API as `start` uses it: the same requests and sockets that any client sends.
 */
import { WebSocket } from 'ws';
import { ServiceError } from '../base/errors.js';
import type {
  ClaimAnswer,
  EnvironmentAnswer,
  EnvironmentBody,
  EnvironmentStatistics,
  ErrorAnswer,
} from '../protocol/http.js';
import { API_BASE, TOKEN_HEADER } from '../protocol/http.js';

/** How a program went, with times in milliseconds since the request to execute it. */
export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Undefined where it ended otherwise; `end` says how. */
  readonly exitCode: number | undefined;
  readonly end: string;
  readonly firstOutputMs: number | undefined;
  readonly endMs: number;
}

export class ApiClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, token: string | undefined) {
    this.#base = `${url}${API_BASE}`;
    this.#headers = token === undefined ? {} : { [TOKEN_HEADER]: token };
  }

  async environments(): Promise<EnvironmentAnswer[]> {
    const { executionEnvironments } = await this.#json<{ executionEnvironments: EnvironmentAnswer[] }>(
      'GET',
      '/execution-environments',
    );
    return executionEnvironments;
  }

  async putEnvironment(id: number, body: EnvironmentBody): Promise<void> {
    await this.#send('PUT', `/execution-environments/${id}`, body);
  }

  async statistics(): Promise<EnvironmentStatistics[]> {
    const byId = await this.#json<Record<string, EnvironmentStatistics>>(
      'GET',
      '/statistics/execution-environments',
    );
    return Object.values(byId);
  }

  claim(executionEnvironmentId: number): Promise<ClaimAnswer> {
    return this.#json<ClaimAnswer>('POST', '/runners', { executionEnvironmentId, inactivityTimeout: 300 });
  }

  async return(runnerId: string): Promise<void> {
    await this.#send('DELETE', `/runners/${runnerId}`);
  }

  /** Runs a command to its end. Rejects where the service refuses it or the socket breaks. */
  async run(runnerId: string, command: string, timeLimit: number): Promise<ProgramResult> {
    const startedMs = performance.now();
    const { websocketUrl } = await this.#json<{ websocketUrl: string }>(
      'POST',
      `/runners/${runnerId}/execute`,
      {
        command,
        timeLimit,
      },
    );
    const socket = new WebSocket(websocketUrl, { headers: this.#headers, perMessageDeflate: false });
    const output = { stdout: '', stderr: '' };
    let firstOutputMs: number | undefined;
    let result: ProgramResult | undefined;
    return new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString('utf8')) as { type: string; data?: unknown };
        const sinceMs = performance.now() - startedMs;
        switch (message.type) {
          case 'start':
            break;
          case 'stdout':
          case 'stderr':
            output[message.type] += String(message.data);
            firstOutputMs ??= sinceMs;
            break;
          default:
            result = {
              ...output,
              exitCode: message.type === 'exit' ? Number(message.data) : undefined,
              end: message.type === 'error' ? String(message.data) : message.type,
              firstOutputMs,
              endMs: sinceMs,
            };
        }
      });
      socket.on('close', (code) => {
        if (result) resolve(result);
        else reject(new ServiceError('EXECUTION_FAILED', `the socket closed with ${code} before the end`));
      });
    });
  }

  async #json<T>(method: string, path: string, body?: unknown): Promise<T> {
    // Our own service answers what protocol/http.ts promises.
    return JSON.parse(await this.#send(method, path, body)) as T;
  }

  async #send(method: string, path: string, body?: unknown): Promise<string> {
    const response = await fetch(this.#base + path, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return text;
    throw new ApiRefusal(`${method} ${path}`, response.status, parseError(text));
  }
}

/** The service answered with an error. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';
  readonly status: number;
  readonly errorCode: string | undefined;

  constructor(request: string, status: number, { message, errorCode }: ErrorAnswer) {
    super(`${request} was answered with ${status}: ${message}`);
    this.status = status;
    this.errorCode = errorCode;
  }
}

function parseError(text: string): ErrorAnswer {
  try {
    return JSON.parse(text) as ErrorAnswer;
  } catch {
    return { message: text }; // something between us and the service answered
  }
}
