// One JSON string (RFC 8259 section 7) after its opening quote, decoded as its bytes arrive, whatever cuts them. What
// becomes of the decoded text is the target's matter. Does not check that the bytes are UTF-8: whoever feeds it must.

/** Takes decoded text, in order: runs that stand in the source as they are, and what escapes stand for. */
export interface JsonTextTarget {
  /** The bytes from `start` up to, not including, `end`; at least one. */
  run(bytes: Uint8Array, start: number, end: number): void;
  /** A Unicode scalar value, so never a surrogate. */
  codePoint(codePoint: number): void;
}

export interface JsonStringReader {
  /** A string starts; the one before has ended. */
  begin(target: JsonTextTarget): void;
  /** Reads on from `start`; the position after the closing quote, or the end of the bytes with `isOpen` still true. */
  read(bytes: Uint8Array, start: number): number;
  readonly isOpen: boolean;
}

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const FIRST_UNESCAPED = 0x20;
const REPLACEMENT = 0xfffd;

const HEX_DIGITS = 4;

/** What the letter after a backslash stands for. */
const SHORT_ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, meaning]) => [letter.charCodeAt(0), meaning.charCodeAt(0)] as const,
  ),
);

/** 1 for the bytes that stand for themselves: a table, since it is asked once for each byte of content. */
const ORDINARY = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= FIRST_UNESCAPED && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

/** `refuse` is called for what no JSON string may hold. */
export function createJsonStringReader(refuse: () => never): JsonStringReader {
  let target: JsonTextTarget | undefined;
  let escape: 'none' | 'begun' | 'hex' = 'none';
  let hexValue = 0;
  let hexDigits = 0;
  // The first half of a pair, kept until the second half comes, or something else that leaves it alone; 0 for none.
  let highSurrogate = 0;

  function loneSurrogate(): void {
    if (highSurrogate === 0) return;
    highSurrogate = 0;
    target!.codePoint(REPLACEMENT);
  }

  function codeUnit(unit: number): void {
    if (isLowSurrogate(unit) && highSurrogate !== 0) {
      const codePoint = 0x10000 + ((highSurrogate - 0xd800) << 10) + (unit - 0xdc00);
      highSurrogate = 0;
      target!.codePoint(codePoint);
      return;
    }
    loneSurrogate();
    if (isHighSurrogate(unit)) highSurrogate = unit;
    else target!.codePoint(isLowSurrogate(unit) ? REPLACEMENT : unit);
  }

  function readEscape(byte: number): void {
    if (escape === 'begun') {
      escape = byte === LETTER_U ? 'hex' : 'none';
      if (escape === 'none') codeUnit(SHORT_ESCAPES.get(byte) ?? refuse());
      return;
    }
    hexValue = hexValue * 16 + (hexDigit(byte) ?? refuse());
    hexDigits += 1;
    if (hexDigits < HEX_DIGITS) return;
    codeUnit(hexValue);
    escape = 'none';
    hexValue = 0;
    hexDigits = 0;
  }

  function readRun(bytes: Uint8Array, start: number): number {
    let end = start;
    while (end < bytes.length && ORDINARY[bytes[end]!] === 1) end += 1;
    if (end > start) {
      loneSurrogate();
      target!.run(bytes, start, end);
    }
    return end;
  }

  function readSpecial(byte: number): void {
    if (byte === BACKSLASH) {
      escape = 'begun';
    } else if (byte === QUOTE) {
      loneSurrogate();
      target = undefined;
    } else {
      refuse();
    }
  }

  return {
    begin(next) {
      target = next;
    },
    read(bytes, start) {
      let position = start;
      while (position < bytes.length && target !== undefined) {
        if (escape !== 'none') {
          readEscape(bytes[position]!);
          position += 1;
          continue;
        }
        position = readRun(bytes, position);
        if (position === bytes.length) break;
        readSpecial(bytes[position]!);
        position += 1;
      }
      return position;
    },
    get isOpen() {
      return target !== undefined;
    },
  };
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function hexDigit(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : undefined;
}

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
