/** Signals that a client may send to its program, by their POSIX names. */
export const PROGRAM_SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
] as const;

export type ProgramSignal = (typeof PROGRAM_SIGNALS)[number];
