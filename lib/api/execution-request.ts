import type { ExecutionRequest } from '../execution/api.js';
import type { ExecuteBody } from '../protocol/http.js';

/** What a client asked for, with everything that it left out. */
export function toExecutionRequest(body: ExecuteBody): ExecutionRequest {
  return {
    command: body.command,
    privileged: body.privilegedExecution ?? false,
    environment: body.environment ?? {},
    timeLimitSeconds: body.timeLimit ?? 0,
    outputLimitBytes: body.outputLimit,
    interactive: body.interactive ?? true,
    workingDirectory: body.workingDirectory,
  };
}
