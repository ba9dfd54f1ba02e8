import { inspect } from 'node:util';
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

const LEVELS = winston.config.npm.levels;

/** One step for all that winston would do in four, since a line is written for each request and each execution. */
function lineFormat(format: LogFormat): winston.Logform.Format {
  return winston.format.printf(({ level, message, ...given }) => {
    const fields: Record<string, unknown> = {};
    for (const key of Object.keys(given)) fields[key] = describe(given[key]);
    const timestamp = new Date().toISOString();
    return format === 'json'
      ? toJson({ timestamp, level, message, ...fields })
      : textLine(timestamp, level, String(message), fields);
  });
}

/** A line must come of everything: what JSON cannot hold is shown as Node does. */
function toJson(value: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(value);
  } catch {
    const shown = Object.entries(value).map(([key, each]) => [
      key,
      typeof each === 'string' ? each : inspect(each),
    ]);
    return JSON.stringify(Object.fromEntries(shown));
  }
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return inspect(value);
  }
}

function textLine(timestamp: string, level: string, message: string, fields: LogFields): string {
  const rest = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : textOf(value)}`,
  );
  return [timestamp, level.padEnd(5), message, ...rest].join(' ');
}

/** Logs to standard error, so that standard output stays free for what a command prints. */
export function createLogger({ level, format }: LoggerOptions): Logger {
  const logger = winston.createLogger({
    level,
    format: lineFormat(format),
    transports: [new winston.transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] })],
  });
  return new LineLogger(logger, level, {});
}

class LineLogger implements Logger {
  readonly #logger: winston.Logger;
  readonly #level: LogLevel;
  readonly #fields: LogFields;

  constructor(logger: winston.Logger, level: LogLevel, fields: LogFields) {
    this.#logger = logger;
    this.#level = level;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields);
  }

  child(fields: LogFields): Logger {
    return new LineLogger(this.#logger, this.#level, { ...this.#fields, ...fields });
  }

  /** Winston would format a line before it finds that nobody wants it. */
  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if ((LEVELS[level] ?? 0) > (LEVELS[this.#level] ?? 0)) return;
    this.#logger.log({ ...this.#fields, ...fields, level, message });
  }
}

/** A logger that says nothing; for tests and for parts that run without one. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
