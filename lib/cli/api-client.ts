/**
 * The public API as `start` uses it: the same requests and sockets that any client sends.
 */
import type { Agent } from 'node:https';
import axios from 'axios';
import type { AxiosInstance } from 'axios';
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

export interface ApiClientOptions {
  readonly token: string | undefined;
  /** Of an https:// address: whom to trust. */
  readonly agent?: Agent;
}

export class ApiClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent | undefined;
  readonly #http: AxiosInstance;

  constructor(url: string, { token, agent }: ApiClientOptions) {
    this.#url = url;
    this.#headers = token === undefined ? {} : { [TOKEN_HEADER]: token };
    this.#agent = agent;
    this.#http = axios.create({
      baseURL: url + API_BASE,
      headers: this.#headers,
      httpsAgent: agent,
      proxy: false,
      responseType: 'text',
      transformResponse: (text: unknown) => text,
      validateStatus: () => true,
    });
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
    const socket = new WebSocket(this.#ownAddress(websocketUrl), {
      headers: this.#headers,
      perMessageDeflate: false,
      agent: this.#agent,
    });
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
    const { status, data } = await this.#http.request<string>({ method, url: path, data: body });
    if (status < 300) return data;
    throw new ApiRefusal(`${method} ${path}`, status, parseError(data));
  }

  /** The same socket at the address that we use: the public one may not be reachable from here. */
  #ownAddress(websocketUrl: string): string {
    return (
      this.#url.replace(/^http/, 'ws') + websocketUrl.slice(websocketUrl.indexOf(`${API_BASE}/runners/`))
    );
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
