// JSON's numbers and literal names (RFC 8259 sections 3 and 6) as an automaton over bytes: whether they are
// well-formed, wherever they are cut. What they stand for is not wanted.

/** Where in a number or a name the last byte led. */
export interface JsonScalarState {
  /** By the byte that comes next; what is not there can not belong to it. */
  readonly next: ReadonlyMap<number, JsonScalarState>;
  /** Whether it may be over here. */
  readonly canEnd: boolean;
}

interface Building {
  readonly next: Map<number, JsonScalarState>;
  readonly canEnd: boolean;
}

const DIGITS_1_TO_9 = '123456789';
const DIGITS = `0${DIGITS_1_TO_9}`;

/** number = [ minus ] int [ frac ] [ exp ] */
const start = state(false);
const minus = state(false);
const zero = state(true);
const integer = state(true);
const point = state(false);
const fraction = state(true);
const exponent = state(false);
const exponentSign = state(false);
const exponentDigits = state(true);

for (const from of [start, minus]) {
  lead(from, '0', zero);
  lead(from, DIGITS_1_TO_9, integer);
}
lead(start, '-', minus);
lead(integer, DIGITS, integer);
for (const from of [zero, integer]) lead(from, '.', point);
for (const from of [point, fraction]) lead(from, DIGITS, fraction);
for (const from of [zero, integer, fraction]) lead(from, 'eE', exponent);
lead(exponent, '+-', exponentSign);
for (const from of [exponent, exponentSign, exponentDigits]) lead(from, DIGITS, exponentDigits);

for (const name of ['true', 'false', 'null']) {
  let from = start;
  for (const [index, letter] of [...name].entries()) {
    const to = state(index === name.length - 1);
    lead(from, letter, to);
    from = to;
  }
}

/** Before the first byte. */
export const JSON_SCALAR_START: JsonScalarState = start;

function state(canEnd: boolean): Building {
  return { next: new Map(), canEnd };
}

function lead(from: Building, characters: string, to: Building): void {
  for (const character of characters) from.next.set(character.charCodeAt(0), to);
}
