/** One line of the table: a name and its samples. */
export interface Figure {
  readonly name: string;
  readonly unit: 'ms' | '/s' | 'MB/s' | 'MB' | 'KB';
  readonly samples: readonly number[];
}

export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The figures as a Markdown table. */
export function formatFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, unit, samples }) => {
    const [p50, p95] = [quantile(samples, 0.5), quantile(samples, 0.95)];
    const numbers = samples.length > 1 ? [p50.toFixed(1), p95.toFixed(1)] : [p50.toFixed(1), ''];
    return `| ${name} | ${numbers[0]} ${unit} | ${numbers[1]} | ${samples.length} |`;
  });
  return ['| figure | p50 | p95 | samples |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
