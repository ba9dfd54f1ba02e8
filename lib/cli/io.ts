/** What a command has of the process; tests bring their own. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The file of this program, to be started again as a child. */
  readonly program: string;
  /** What the command is asked for. */
  readonly stdout: CliStream;
  /** Progress, messages and logs. */
  readonly stderr: CliStream;
  /** SIGTERM and SIGINT. */
  readonly signals: SignalSource;
}

export interface CliStream {
  write(text: string): unknown;
  /** True on a terminal, where a line can be written over. */
  readonly isTTY?: boolean | undefined;
}

export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
}
