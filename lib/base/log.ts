import winston from 'winston';

/**
 * The logger that every part is handed. Messages are constant, variables are fields; `child` adds fields at each unit
 * of work. Commands, tokens and file contents are never logged.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'json' | 'text';

export interface LoggerOptions {
  readonly level: LogLevel;
  /** `json`: one object a line, for machines. `text`: one readable line. */
  readonly format: LogFormat;
}

/** Errors become their code, message and causes; a stack only where the error is no ServiceError, hence a bug. */
function describe(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code: unknown = 'code' in value ? value.code : undefined;
  return {
    message: value.message,
    ...(code === undefined ? { stack: value.stack } : { code }),
    ...('details' in value && Object.keys(value.details as object).length > 0
      ? { details: value.details }
      : {}),
    ...(value.cause === undefined ? {} : { cause: describe(value.cause) }),
  };
}

const describeFields = winston.format((info) => {
  for (const [key, value] of Object.entries(info)) info[key] = describe(value);
  return info;
});

const textLine = winston.format.printf(({ timestamp, level, message, ...fields }) => {
  const rest = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return [String(timestamp), level.padEnd(5), String(message), ...rest].join(' ');
});

/** Logs to standard error, so that standard output stays free for what a command prints. */
export function createLogger({ level, format }: LoggerOptions): Logger {
  const { combine, timestamp, json } = winston.format;
  return fromWinston(
    winston.createLogger({
      level,
      format: combine(describeFields(), timestamp(), format === 'json' ? json() : textLine),
      transports: [new winston.transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] })],
    }),
  );
}

function fromWinston(logger: winston.Logger): Logger {
  return {
    debug: (message, fields) => void logger.debug(message, fields),
    info: (message, fields) => void logger.info(message, fields),
    warn: (message, fields) => void logger.warn(message, fields),
    error: (message, fields) => void logger.error(message, fields),
    child: (fields) => fromWinston(logger.child(fields)),
  };
}

/** A logger that says nothing; for tests and for parts that run without one. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
