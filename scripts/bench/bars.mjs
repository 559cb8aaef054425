// What must hold of a figure, and whether it does. Pure.

/**
 * Of the `ratio` to the floor or of the `pasted` figure itself, at least or at most. With `timesFloor`, `atMost` is
 * counted from so many times the floor's figure.
 * @typedef {{ of: 'ratio' | 'pasted', atLeast?: number, atMost?: number, timesFloor?: number }} Bar
 */

/**
 * Whether the bar is met; false for a figure that could not be had.
 * @param {Bar} bar
 * @param {{ floor: number, pasted: number, ratio: number }} figures
 */
export function isMet({ of, atLeast, atMost, timesFloor }, figures) {
  const figure = figures[of];
  if (atLeast !== undefined) return figure >= atLeast;
  return figure <= /** @type {number} */ (atMost) + (timesFloor === undefined ? 0 : timesFloor * figures.floor);
}

/** Such as `>= 0.8`, `<= 80 MB`, `<= floor + 120 ms`. @param {Bar} bar @param {string} unit */
export function barText({ of, atLeast, atMost, timesFloor }, unit) {
  const relation = atLeast === undefined ? '<=' : '>=';
  const bound = atLeast ?? atMost;
  if (of === 'ratio') return `${relation} ${bound?.toFixed(2)}`;
  const above = timesFloor === undefined ? '' : `${timesFloor === 1 ? '' : `${timesFloor} x `}floor + `;
  return `${relation} ${above}${bound} ${unit.split(' ').at(-1)}`;
}
