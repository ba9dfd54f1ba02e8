import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const folder = path.resolve(import.meta.dirname, '../../fixtures/nomad');

/** Names of the transcripts under one folder (`http`, `exec`, `events`), relative to all of them. */
export function transcriptNames(under: string): string[] {
  return readdirSync(path.join(folder, under), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('json'))
    .map((name) => path.posix.join(under, name.split(path.sep).join('/')))
    .sort();
}

export function readTranscript(name: string): Buffer {
  return readFileSync(path.join(folder, name));
}

export interface HttpTranscript {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
  };
  readonly response: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

export interface ExecTranscript {
  readonly request: { readonly path?: string };
  readonly frames: readonly ExecStep[];
}

export interface ExecStep {
  readonly event?: 'open' | 'close';
  readonly code?: number;
  readonly reason?: string;
  readonly recv?: unknown;
  readonly send?: unknown;
  readonly note?: string;
}

export function httpTranscript(name: string): HttpTranscript {
  return JSON.parse(readTranscript(name).toString('utf8')) as HttpTranscript;
}

export function execTranscript(name: string): ExecTranscript {
  return JSON.parse(readTranscript(name).toString('utf8')) as ExecTranscript;
}
