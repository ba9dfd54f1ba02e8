import type { PartyName } from './stack.js';

/** A number with its samples. What several parties have side by side has one name. */
export interface Figure {
  readonly name: string;
  readonly unit: 'ms' | '/s' | 'MB/s' | 'MB' | 'KB' | '';
  /** Whose figure it is; the whole machine's belong to the service that is being measured. */
  readonly party: PartyName;
  readonly samples: readonly number[];
}

export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The median of a figure; NaN where it was not measured. */
export function median(figures: readonly Figure[], name: string, party: PartyName): number {
  const found = figures.find((figure) => figure.name === name && figure.party === party);
  return quantile(found?.samples ?? [], 0.5);
}

/** The figures as a Markdown table, one line for each name. */
export function formatFigures(figures: readonly Figure[]): string {
  const names = [...new Set(figures.map(({ name }) => name))];
  const rows = names.map((name) => {
    const of = (party: PartyName): Figure | undefined =>
      figures.find((figure) => figure.name === name && figure.party === party);
    const [warm, cold, floor] = [of('warm'), of('cold'), of('floor')];
    const ratio = ratioOf(warm, cold);
    const cells = [cell(warm, 0.5), cell(warm, 0.95), cell(cold, 0.5), ratio, cell(floor, 0.5)];
    const counts = [warm, cold, floor].map((figure) => figure?.samples.length ?? 0);
    return `| ${[name, ...cells, Math.max(...counts)].join(' | ')} |`;
  });
  const head = ['figure', 'warm p50', 'warm p95', 'cold p50', 'warm is better by', 'floor p50', 'samples'];
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...rows].join('\n');
}

export function formatNumber(value: number, unit: Figure['unit']): string {
  const digits = Math.abs(value) < 1 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return `${value.toFixed(digits)}${unit === '' || unit.startsWith('/') ? unit : ` ${unit}`}`;
}

function cell(figure: Figure | undefined, share: number): string {
  if (!figure || (share !== 0.5 && figure.samples.length < 2)) return '';
  return formatNumber(quantile(figure.samples, share), figure.unit);
}

function ratioOf(warm: Figure | undefined, cold: Figure | undefined): string {
  if (!warm || !cold) return '';
  const [a, b] = [quantile(warm.samples, 0.5), quantile(cold.samples, 0.5)];
  const isRate = warm.unit.endsWith('/s');
  const ratio = isRate ? a / b : b / a;
  return a > 0 && b > 0 ? `${ratio.toFixed(1)} ×` : '';
}

const SCALE = /^(.*), ((?:\d+ environments of )?\d+ runners)$/;

/** Figures whose name ends with a number of runners: one line for each thing measured, one column for each number. */
export function formatByScale(figures: readonly Figure[]): string {
  const parts = figures.flatMap((figure) => {
    const [, what = '', runners = ''] = SCALE.exec(figure.name) ?? [];
    return what === '' ? [] : [{ what, runners, figure }];
  });
  const columns = [...new Set(parts.map(({ runners }) => runners))];
  const rows = [...new Set(parts.map(({ what }) => what))].map((what) => {
    const cells = columns.map((runners) =>
      cell(parts.find((part) => part.what === what && part.runners === runners)?.figure, 0.5),
    );
    return `| ${[what, ...cells].join(' | ')} |`;
  });
  return [`| median | ${columns.join(' | ')} |`, `|${' --- |'.repeat(columns.length + 1)}`, ...rows].join(
    '\n',
  );
}
