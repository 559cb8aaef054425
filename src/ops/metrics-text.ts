// The Prometheus text format, version 0.0.4 ("Exposition formats", "Text format details"). Does not know which metrics
// there are.

import type { Metric } from './metrics-table.ts';

export const METRICS_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The lines that precede a metric's samples. */
export function headerLines({ name, type, help }: Metric): string {
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
}

/** One sample. `labels` are names with values; the values are escaped here. */
export function sampleLine(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeValue(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
