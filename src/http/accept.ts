// Which of the two media types that this service can answer with a client prefers (RFC 9110 section 12.5.1). Not a
// general negotiation: there is nothing else to choose from.

/** Three decimals at most, and never above one (RFC 9110 section 12.4.2). */
const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Whether text/plain has a strictly greater weight than application/json. Absent, or a wildcard, means no. */
export function prefersText(accept: readonly string[]): boolean {
  if (accept.length === 0) return false;
  const ranges = accept.join(',').toLowerCase().split(',').map(parseRange);
  return weight(ranges, 'text', 'plain') > weight(ranges, 'application', 'json');
}

interface MediaRange {
  readonly name: string;
  readonly weight: number;
}

/** A weight that is not well-formed counts as 0: such a range asks for nothing that can be understood. */
function parseRange(text: string): MediaRange {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim());
  const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length) ?? '1';
  return { name, weight: QVALUE.test(q) ? Number(q) : 0 };
}

/** The most specific range that matches decides, not the greatest weight. Of equal ones the greater counts. */
function weight(ranges: readonly MediaRange[], type: string, subtype: string): number {
  for (const name of [`${type}/${subtype}`, `${type}/*`, '*/*']) {
    const weights = ranges.filter((range) => range.name === name).map((range) => range.weight);
    if (weights.length > 0) return Math.max(...weights);
  }
  return 0;
}
