// Under which key the limits count a client's address. (The decisions, Identity and trust of headers.) Does not
// decide which address is the client's.

const GROUPS = 8;
const NETWORK_GROUPS = 4;

const DOTTED_END = /^(.*:)([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})$/;

/**
 * Groups 0 to 5 of ::ffff:0:0/96, under which IPv4 clients appear on a dual-stack socket (RFC 4291 section 2.5.5.2).
 */
const MAPPED_PREFIX = '0:0:0:0:0:ffff';

/**
 * IPv4 whole; IPv4-mapped IPv6 as that IPv4; other IPv6 by its /64, since that is what one host or household is
 * given, and all of its addresses are equally easy to use. Text that is no address is its own key.
 */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const groups = ipv6Groups(address);
  if (groups === undefined) return address;
  if (hexText(groups.slice(0, 6)) === MAPPED_PREFIX) return ipv4Text(groups[6]!, groups[7]!);
  return `${hexText(groups.slice(0, NETWORK_GROUPS))}::/64`;
}

/**
 * The eight groups of RFC 4291 section 2.2, any of its forms; a zone (RFC 4007) is ignored. Undefined when it is
 * none.
 */
function ipv6Groups(address: string): number[] | undefined {
  const [withoutZone = ''] = address.split('%', 1);
  const [front = [], back, ...more] = withDotsAsGroups(withoutZone).split('::').map(hexGroups);
  if (more.length > 0) return undefined;
  const missing = GROUPS - front.length - (back?.length ?? 0);
  // `::` stands for at least one group.
  if (back === undefined ? missing !== 0 : missing < 1) return undefined;

  const groups = [...front, ...new Array<number>(missing).fill(0), ...(back ?? [])];
  return groups.includes(NaN) ? undefined : groups;
}

/** NaN for each group that is none. */
function hexGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').map((group) => (/^[0-9A-Fa-f]{1,4}$/.test(group) ? parseInt(group, 16) : NaN));
}

/** An IPv4 address at the end, as in `::ffff:192.0.2.1`, written as two groups; all else unchanged. */
function withDotsAsGroups(text: string): string {
  const [, front, ...octets] = DOTTED_END.exec(text) ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = octets.map(Number);
  if (front === undefined || Math.max(a, b, c, d) > 255) return text;
  return front + hexText([a * 256 + b, c * 256 + d]);
}

function ipv4Text(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

function hexText(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16)).join(':');
}
