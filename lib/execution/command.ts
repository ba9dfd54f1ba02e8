import type { ExecutionId, Randomness } from '../base/ids.js';
import type { Config } from '../config/config.js';
import type { Environment } from '../environments/environment.js';
import type { RunnerUser } from '../shell/frames.js';
import type { CommandRequest, UserChoice } from '../shell/request.js';
import { isHarmlessName } from '../shell/request.js';
import type { ExecutionRequest } from './api.js';

/** Digits that no program can guess. */
export function newToken(randomness: Randomness): string {
  return BigInt(`0x${randomness.uuid().replaceAll('-', '')}`)
    .toString()
    .padStart(39, '0');
}

export interface UserSource {
  readonly privileged: boolean;
  readonly config: Pick<Config, 'runner'>;
  readonly environment: Environment;
  /** Who unprivileged commands of this runner are, once that was found out. */
  readonly user: RunnerUser | undefined;
}

export interface CommandSource extends Omit<UserSource, 'privileged'> {
  readonly id: ExecutionId;
  readonly token: string;
  readonly request: Pick<ExecutionRequest, 'command' | 'privileged' | 'environment' | 'workingDirectory'>;
  readonly config: Pick<Config, 'execution' | 'runner'>;
}

/** A request of a client as the runner gets it: with everything that the configuration and the environment add. */
export function commandRequest(source: CommandSource): CommandRequest {
  const { id, token, request, config, environment } = source;
  const given = { ...environment.environment, ...request.environment };
  const configured = Object.entries(config.execution.environment).filter(([name]) => !(name in given));
  return {
    token,
    id,
    command: request.command,
    environment: { ...Object.fromEntries(configured.filter(([name]) => !isHarmlessName(name))), ...given },
    exported: Object.fromEntries(configured.filter(([name]) => isHarmlessName(name))),
    workingDirectory: request.workingDirectory,
    user: userChoice({ ...source, privileged: request.privileged }),
    splitStderr: config.execution.interactiveStderr,
  };
}

/** A user that the environment names must exist; the configured one is only preferred to `nobody`. */
export function userChoice({ privileged, config, environment, user }: UserSource): UserChoice {
  if (privileged) return { kind: 'privileged' };
  if (user) return { kind: 'known', user };
  const names = environment.user === undefined ? [config.runner.user, 'nobody'] : [environment.user];
  return { kind: 'first-of', names };
}
