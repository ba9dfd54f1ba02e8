import type {
  ClaimAnswer,
  ClaimBody,
  ExecuteAnswer,
  ExecuteBody,
  MappedPortAnswer,
  SocketQuery,
} from '../../protocol/http.js';
import type { ExecMessage } from '../../protocol/websocket.js';
import { answer, choice, integer, list, object, text, told } from './schema.js';
import { commandId, environmentIdNumber, flag, path, plainText, seconds, variables } from './values.js';

export const claimBody = object<ClaimBody>(
  { executionEnvironmentId: told(environmentIdNumber, 'The environment to take a runner of.', 10) },
  {
    inactivityTimeout: told(
      seconds,
      'Seconds without execution or transfer after which the runner is taken back. 0, the default, means never.',
      300,
    ),
  },
);

const mappedPort = answer<MappedPortAnswer>(
  {
    exposedPort: told(integer(1, 65_535), 'The port in the runner.', 8080),
    hostAddress: told(text('an address'), 'Where it is reached from outside.', '10.0.0.7:23456'),
  },
  {},
);

export const claimAnswer = answer<ClaimAnswer>(
  {
    runnerId: told(
      text('the id of a runner', { minLength: 1 }),
      'Names the runner in all further requests.',
      '10-8f8f3c1e-6a55-4c02-9d0c-2f6a5a0c7a11',
    ),
    mappedPorts: list(mappedPort),
  },
  {},
);

const command = {
  command: told(
    plainText,
    'The command, exactly as `sh -c` is to run it; line breaks are fine.',
    'python3 main.py',
  ),
};

const commandOptions = {
  privilegedExecution: told(flag, 'Run as root instead of the unprivileged user.', false),
  environment: told(variables, 'Variables of this command, over those of the environment.'),
  timeLimit: told(
    seconds,
    'Seconds after which the program is ended with the message `timeout`. 0, the default, means never.',
    10,
  ),
  outputLimit: told(
    integer(0, Number.MAX_SAFE_INTEGER),
    'Most bytes of output, both streams together; at the first one beyond, the program is ended with an `error`. ' +
      '0 means any number; without it `execution.outputLimit` of the service holds.',
    1_000_000,
  ),
  interactive: told(
    flag,
    'Run with a terminal (the default). `false` gives the program pipes instead and keeps bytes as they are.',
    true,
  ),
  workingDirectory: told(path, 'Where the command starts; else in the working directory of the image.'),
};

export const executeBody = object<ExecuteBody>(command, commandOptions);

/** The same on a session socket. */
export const execMessage = object<ExecMessage>(
  { type: choice('exec'), id: commandId, ...command },
  commandOptions,
);

export const executeAnswer = answer<ExecuteAnswer>(
  {
    websocketUrl: told(
      text('a URL', { format: 'uri' }),
      'Open it once, within `execution.preparedTimeout` seconds (60 by default), to run the command.',
      'ws://127.0.0.1:7200/api/v1/runners/10-8f8f3c1e-6a55-4c02-9d0c-2f6a5a0c7a11/websocket?executionID=5f0c2b52-19c7-4b0e-8f07-0a1c1f1f9d3e',
    ),
  },
  {},
);

export const socketQuery = object<SocketQuery>(
  {
    executionID: told(
      text('the id of an execution', { minLength: 1 }),
      'From the `websocketUrl` of a prepared execution. Where several services share a Nomad it begins with the name of the one that prepared it.',
      '5f0c2b52-19c7-4b0e-8f07-0a1c1f1f9d3e',
    ),
  },
  {},
);
