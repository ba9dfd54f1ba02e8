import { ServiceError } from '../base/errors.js';
import type { ExecutionRequest } from './api.js';

/** The kernel's limits: one `name=value`, its NUL included, and a bound well under that of all together. */
const LONGEST_VARIABLE = 128 * 1024 - 1;
const LARGEST_ENVIRONMENT = 1024 * 1024;
const LONGEST_PATH = 4095;

function refuse(message: string): never {
  throw new ServiceError('INVALID_REQUEST', message);
}

/** Throws INVALID_REQUEST for a request that no process can be given, and COMMAND_TOO_LARGE. */
export function assertRunnable(request: ExecutionRequest, maxCommandBytes: number): void {
  if (Buffer.byteLength(request.command) > maxCommandBytes) {
    throw new ServiceError(
      'COMMAND_TOO_LARGE',
      `command is larger than the limit of ${maxCommandBytes} bytes; copy a script into the runner and run that`,
    );
  }
  if (request.command.includes('\0')) refuse('command holds a NUL character, which no command can');
  const directory = request.workingDirectory;
  if (directory !== undefined) {
    if (directory === '') refuse('workingDirectory is empty');
    if (directory.includes('\0')) refuse('workingDirectory holds a NUL character, which no path can');
    if (Buffer.byteLength(directory) > LONGEST_PATH) refuse('workingDirectory is longer than any path');
  }
  let total = 0;
  for (const [name, value] of Object.entries(request.environment)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      refuse(`environment has the name ${JSON.stringify(name)}; names match [A-Za-z_][A-Za-z0-9_]*`);
    }
    if (value.includes('\0')) refuse(`environment.${name} holds a NUL character, which no variable can`);
    const size = Buffer.byteLength(`${name}=${value}`);
    if (size >= LONGEST_VARIABLE) refuse(`environment.${name} is longer than ${LONGEST_VARIABLE} bytes`);
    total += size;
  }
  if (total > LARGEST_ENVIRONMENT) refuse(`environment is larger than ${LARGEST_ENVIRONMENT} bytes`);
}
