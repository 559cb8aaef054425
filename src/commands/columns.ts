// Tables for people: cells as text below each other. What is in them is the commands' business.

/** One line for each row; every column but the last as wide as its widest cell. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows;
  const widths = first.slice(0, -1).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
}
