// Shannon entropy of bytes: how unpredictable each is, taken by itself. Says nothing about order, so `abcabc` scores
// like `aabbcc`.

/** How often each of the 256 byte values occurred. */
export type Histogram = ArrayLike<number>;

/** Bits per byte, 0 to 8: -sum(p log2 p) over the values that occurred. No bytes at all have an entropy of 0. */
export function entropyBitsPerByte(histogram: Histogram): number {
  let total = 0;
  for (let value = 0; value < histogram.length; value += 1) total += histogram[value]!;

  let bits = 0;
  for (let value = 0; value < histogram.length; value += 1) {
    const count = histogram[value]!;
    if (count > 0) bits += (count / total) * Math.log2(total / count);
  }
  return bits;
}
