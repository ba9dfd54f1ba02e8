import { claimAnswer, claimBody, executeAnswer, executeBody, socketQuery } from '../schemas/runner.js';
import { choice, text, told } from '../schemas/schema.js';
import type { Operation } from './operation.js';
import { defineBodyOperation, defineOperation, json, noQuery } from './operation.js';

/** Any text is an id that may be asked for; one that is none is of a runner that is gone. */
export const runnerIdParameter = told(
  text('the id of a runner', { minLength: 1 }),
  'The id that the claim answered.',
  '10-8f8f3c1e-6a55-4c02-9d0c-2f6a5a0c7a11',
);

/** The parameter of the path that names a runner; undefined for operations that are not of one runner. */
export function runnerParameterOf({ parameters = {} }: Operation): string | undefined {
  return Object.keys(parameters).find((name) => parameters[name] === runnerIdParameter);
}

const id = runnerIdParameter;
const claimed = { id: '$response.body#/runnerId' };

export const claimRunner = defineBodyOperation({
  id: 'claimRunner',
  method: 'POST',
  path: '/runners',
  tag: 'Runners',
  access: 'runners',
  summary: 'Claim a runner',
  description:
    'Hands out an idle runner, to one client, once. Nothing is waited for: where none is idle the answer is a 500 `NOMAD_OVERLOAD` that says why, with `Retry-After`.',
  query: noQuery,
  body: {
    schema: claimBody,
    examples: { 'five minutes': { executionEnvironmentId: 10, inactivityTimeout: 300 } },
  },
  answers: {
    200: {
      ...json('The runner.', claimAnswer, {
        runnerId: '10-8f8f3c1e-6a55-4c02-9d0c-2f6a5a0c7a11',
        mappedPorts: [{ exposedPort: 8080, hostAddress: '10.0.0.7:23456' }],
      }),
      links: {
        prepareExecution: claimed,
        updateFiles: claimed,
        listFiles: claimed,
        readFile: claimed,
        returnRunner: claimed,
      },
    },
  },
  failures: ['ENVIRONMENT_NOT_FOUND', 'NO_RUNNER_AVAILABLE', 'NOT_READY'],
  usesNomad: true,
});

export const returnRunner = defineOperation({
  id: 'returnRunner',
  method: 'DELETE',
  path: '/runners/{id}',
  tag: 'Runners',
  access: 'runners',
  summary: 'Return a runner',
  description: 'Ends all that runs in it. A runner is never handed out twice: its job is purged from Nomad.',
  parameters: { id },
  query: noQuery,
  answers: { 204: { description: 'It is gone.' } },
  failures: ['RUNNER_GONE', 'NOT_READY'],
  usesNomad: true,
});

export const prepareExecution = defineBodyOperation({
  id: 'prepareExecution',
  method: 'POST',
  path: '/runners/{id}/execute',
  tag: 'Executions',
  access: 'runners',
  summary: 'Prepare a command',
  description: 'The command runs when the socket of the answer is opened, and once.',
  parameters: { id },
  query: noQuery,
  body: {
    schema: executeBody,
    examples: {
      plain: { command: 'python3 main.py', timeLimit: 10 },
      'exact bytes': { command: 'tar -c src', interactive: false, workingDirectory: '/workspace' },
      'with variables': {
        command: 'echo "$GREETING"\nid',
        environment: { GREETING: 'hello world' },
        privilegedExecution: true,
      },
    },
  },
  answers: {
    200: json('The address of its socket.', executeAnswer, {
      websocketUrl:
        'ws://127.0.0.1:7200/api/v1/runners/10-8f8f3c1e-6a55-4c02-9d0c-2f6a5a0c7a11/websocket?executionID=5f0c2b52-19c7-4b0e-8f07-0a1c1f1f9d3e',
    }),
  },
  failures: ['RUNNER_GONE', 'COMMAND_TOO_LARGE', 'TOO_MANY_EXECUTIONS', 'NOT_READY'],
});

export const openSocket = defineOperation({
  id: 'openSocket',
  method: 'GET',
  path: '/runners/{id}/websocket',
  tag: 'Executions',
  access: 'runners',
  summary: 'Run a prepared command, with a WebSocket',
  description: [
    'A WebSocket handshake (RFC 6455, version 13). A request that is none is answered with 400. All that can be wrong is answered before the upgrade; an execution serves one socket.',
    'From the server come text frames, each one JSON object: `{"type":"start"}` first; then `{"type":"stdout","data":"…"}` and `{"type":"stderr","data":"…"}`; then exactly one end, which is `{"type":"exit","data":0}` with the exit code, `{"type":"timeout"}` at a time limit, or `{"type":"error","data":"…"}`. Nothing follows the end; the socket is then closed with 1000.',
    'What the client sends, text or binary, is the program’s standard input as it stands. With a terminal `\\u0003` interrupts and `\\u0004` ends the input. A client that closes or vanishes ends its program and everything that this one started.',
    'With the subprotocol `serai.v1` text frames of the client are JSON: `{"type":"stdin","data":"…"}`, `{"type":"resize","cols":80,"rows":24}`, `{"type":"signal","data":"SIGINT"}` and `{"type":"eof"}`; binary ones are input. `start` has `executionId`, the end has `durationMs` and `oomKilled`, and what the client sent and could not be carried out is answered with `{"type":"refused","data":"…"}`.',
  ].join('\n\n'),
  parameters: { id },
  query: socketQuery,
  answers: {
    101: {
      description: 'The connection is a WebSocket now.',
      headers: {
        Upgrade: { description: 'Always `websocket`.', schema: text('websocket') },
        'Sec-WebSocket-Protocol': {
          description: '`serai.v1` where the client offered it; else absent.',
          schema: choice('serai.v1'),
        },
      },
    },
  },
  failures: ['RUNNER_GONE', 'EXECUTION_NOT_FOUND', 'EXECUTION_TAKEN', 'NOT_READY'],
});

export const openSession = defineOperation({
  id: 'openSession',
  method: 'GET',
  path: '/runners/{id}/session',
  tag: 'Executions',
  access: 'runners',
  summary: 'Run many commands, one after the other, with one WebSocket',
  description: [
    'A WebSocket handshake that offers the subprotocol `serai.v1`; any other request is answered with 400. It costs no request and no handshake per command, and each command counts as one execution.',
    'Text frames of the client are JSON. `{"type":"exec","id":"1","command":"…"}` runs a command: `id` is any text of 1 to 128 characters, and the rest is what `execute` takes. While one runs, up to 16 more wait; the next gets an `error`. `{"type":"cancel","id":"1"}` ends one that runs or waits. `stdin`, `resize`, `signal` and `eof` are as on the socket of an execution, for the command that runs, and may name it by `id`; binary frames are its input.',
    'From the server come the messages of `serai.v1`, each with the `id` of its command: `start`, output, then exactly one end. A command that is not begun gets its end, an `error`, alone. What is no message is answered with `refused`.',
    'A client that closes or vanishes ends the command that runs. The server closes with 1000 when the runner is gone, with 1001 when the service stops, and with 1012 when another replica has the runner now: the runner is there, and a new session may be opened on it.',
  ].join('\n\n'),
  parameters: { id },
  query: noQuery,
  answers: {
    101: {
      description: 'The connection is a WebSocket now.',
      headers: {
        Upgrade: { description: 'Always `websocket`.', schema: text('websocket') },
        'Sec-WebSocket-Protocol': { description: 'Always `serai.v1`.', schema: choice('serai.v1') },
      },
    },
  },
  failures: ['RUNNER_GONE', 'NOT_READY'],
});
