// Amounts as people read them, in what commands print. JSON has the plain numbers.

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Such as `512 bytes` and `3.1 MiB`: one digit after the point, rounded down, so that nothing seems full too early. */
export function showBytes(bytes: number): string {
  let [size, unit] = [bytes, 0];
  for (; size >= 1024 && unit < UNITS.length - 1; unit += 1) size /= 1024;
  return unit === 0 ? `${bytes} bytes` : `${(Math.floor(size * 10) / 10).toFixed(1)} ${UNITS[unit]}`;
}

/** Whole percent, rounded down. */
export function showShare(part: number, whole: number): string {
  return `${Math.floor((part / whole) * 100)} %`;
}
