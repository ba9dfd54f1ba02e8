import type { Moment } from '../time.js';
import type { TaskExit } from '../driver.js';
import { nsToMs } from '../time.js';
import type { TaskEvent } from '../state/records.js';

/** The events of a task's life, worded as Nomad words them. */
const EMPTY = {
  DiskLimit: 0,
  DownloadError: '',
  DriverError: '',
  DriverMessage: '',
  ExitCode: 0,
  FailedSibling: '',
  FailsTask: false,
  GenericSource: '',
  KillError: '',
  KillReason: '',
  KillTimeout: 0,
  Message: '',
  RestartReason: '',
  SetupError: '',
  Signal: 0,
  StartDelay: 0,
  TaskSignal: '',
  TaskSignalReason: '',
  ValidationError: '',
  VaultError: '',
};

interface EventText {
  readonly display: string;
  readonly details?: Readonly<Record<string, string>>;
  readonly fields?: Readonly<Record<string, unknown>>;
}

function event(moment: Moment, type: string, { display, details = {}, fields = {} }: EventText): TaskEvent {
  return { ...EMPTY, ...fields, Type: type, Time: moment.ns, DisplayMessage: display, Details: details };
}

export function received(at: Moment): TaskEvent {
  return event(at, 'Received', { display: 'Task received by client' });
}

export function taskSetup(at: Moment): TaskEvent {
  const message = 'Building Task Directory';
  return event(at, 'Task Setup', { display: message, details: { message }, fields: { Message: message } });
}

export function started(at: Moment): TaskEvent {
  return event(at, 'Started', { display: 'Task started by client' });
}

export function driverFailure(at: Moment, message: string): TaskEvent {
  return event(at, 'Driver Failure', {
    display: message,
    details: { driver_error: message },
    fields: { DriverError: message },
  });
}

export function terminated(at: Moment, { exitCode, signal, oomKilled }: TaskExit): TaskEvent {
  const message = oomKilled ? 'OOM Killed' : '';
  const display = [
    `Exit Code: ${exitCode}`,
    ...(signal === 0 ? [] : [`Signal: ${signal}`]),
    ...(message === '' ? [] : [`Exit Message: ${JSON.stringify(message)}`]),
  ].join(', ');
  return event(at, 'Terminated', {
    display,
    details: {
      exit_code: String(exitCode),
      signal: String(signal),
      oom_killed: String(oomKilled),
      ...(message === '' ? {} : { exit_message: message }),
    },
    fields: { ExitCode: exitCode, Signal: signal, Message: message },
  });
}

export function restartSignaled(at: Moment): TaskEvent {
  const reason = 'User requested running tasks to restart';
  return event(at, 'Restart Signaled', {
    display: reason,
    details: { restart_reason: reason },
    fields: { RestartReason: reason },
  });
}

export function restarting(at: Moment, reason: string, delayNs: number): TaskEvent {
  return event(at, 'Restarting', {
    display: `Task restarting in ${goSeconds(delayNs)}`,
    details: { restart_reason: reason, start_delay: String(delayNs) },
    fields: { RestartReason: reason, StartDelay: delayNs },
  });
}

export function notRestarting(at: Moment, reason: string): TaskEvent {
  return event(at, 'Not Restarting', {
    display: reason,
    details: { restart_reason: reason, fails_task: 'true' },
    fields: { RestartReason: reason, FailsTask: true },
  });
}

export function siblingFailed(at: Moment, sibling: string): TaskEvent {
  return event(at, 'Sibling Task Failed', {
    display: `Task's sibling ${JSON.stringify(sibling)} failed`,
    details: { failed_sibling: sibling },
    fields: { FailedSibling: sibling },
  });
}

export function killing(at: Moment, killTimeoutNs: number): TaskEvent {
  const timeout = goSeconds(killTimeoutNs);
  return event(at, 'Killing', {
    display: `Sent interrupt. Waiting ${timeout} before force killing`,
    details: { kill_timeout: timeout },
    fields: { KillTimeout: killTimeoutNs },
  });
}

export function killed(at: Moment): TaskEvent {
  return event(at, 'Killed', { display: 'Task successfully killed' });
}

/** A duration as Go prints it, for the lengths that occur here. */
export function goSeconds(ns: number): string {
  const seconds = nsToMs(ns) / 1000;
  return `${Number(seconds.toFixed(9))}s`;
}
