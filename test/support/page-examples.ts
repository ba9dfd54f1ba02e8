import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Example {
  readonly script: string;
  /** What it prints, `…` standing for anything; undefined where the page does not say. */
  readonly output: string | undefined;
}

/** The examples of a page in order: a block of one language and, if it follows at once, what that prints. */
export function examplesOf(name: string, language: string): Example[] {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../docs', name), 'utf8');
  const blocks = page.matchAll(
    new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`\\n(?:\\n\`\`\`text\\n([^]*?)^\`\`\`\\n)?`, 'gm'),
  );
  return [...blocks].map(([, script = '', output]) => ({ script, output }));
}

/** What an output has to look like. */
export function patternOf(output: string): RegExp {
  const escaped = output
    .trim()
    .split(/(…|\n)/)
    .map((part) => (part === '…' ? '.+?' : part === '\n' ? '\\n*' : part.replace(/[^\w\s]/g, '\\$&')));
  return new RegExp(`^${escaped.join('')}$`);
}
