import assert from 'node:assert/strict';
import test from 'node:test';
import { NOTHING } from '../../src/core/content.ts';
import { JsonContentReader, MAX_FRAME_BYTES } from '../../src/core/json-content.ts';
import { Refusal } from '../../src/core/refusals.ts';

/** The content of a document, given in one piece or byte by byte. */
function contentOf(document: string | Uint8Array, pieceBytes = Infinity): string {
  const bytes = Buffer.from(document as string);
  const taken: Uint8Array[] = [];
  const reader = new JsonContentReader((piece) => {
    taken.push(piece);
  });
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    reader.write(bytes.subarray(start, start + pieceBytes));
  }
  reader.end();
  return Buffer.concat(taken).toString();
}

function assertContent(document: string | Uint8Array, content: string): void {
  assert.equal(contentOf(document), content);
  assert.equal(contentOf(document, 1), content);
}

function assertRefused(document: string | Uint8Array): void {
  for (const pieceBytes of [Infinity, 1]) {
    assert.throws(
      () => contentOf(document, pieceBytes),
      (error) => error instanceof Refusal && error.refusal === 'jsonInvalid',
      `not refused: ${document.toString()}`,
    );
  }
}

/** What the refusal of a document says beside the words that all of them have. */
function hintOf(document: string): unknown {
  try {
    return contentOf(document);
  } catch (error) {
    return error instanceof Refusal && error.fields['hint'];
  }
}

function nested(depth: number): string {
  return `{"content":"x","y":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
}

test('JsonContentReader: passes the content on, decoded', () => {
  assertContent('{"content":"hello"}', 'hello');
  assertContent(' \t\r\n{ "content" : "h\u00e9llo \u{1f600}" } \n', 'h\u00e9llo \u{1f600}');
  assertContent('{"content":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\u0000"}', '"\\/\b\f\n\r\tA\u00e9\u20ac\0');
});

test('JsonContentReader: other members are checked and left out', () => {
  assertContent('{"a":null,"b":[true,false,{"content":"no"},-1.5e+3],"content":"yes","c":{},"d":[],"":""}', 'yes');
  assertContent('{"x":{"content":"no"},"content":"yes"}', 'yes');
  assertContent('{"x":1,"x":2,"content":"yes"}', 'yes');
});

test('JsonContentReader: member names are decoded before they are compared', () => {
  assertContent('{"\\u0063ont\\u0065nt":"yes"}', 'yes');
  assertContent('{"content":"yes","Content":"no","content ":"no","conten":"no","\\ud800content":"no"}', 'yes');
  assertRefused('{"content\\u0000":"no"}');
});

test('JsonContentReader: member names around the longest form of content, and far longer', () => {
  const longest = [...'content'].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join('');
  assertContent(`{"${longest}":"yes"}`, 'yes');
  for (const name of [-1, 0, 1, 2, 1000].map((more) => 'n'.repeat(longest.length + more))) {
    assertContent(`{"${name}":"no","content":"yes"}`, 'yes');
  }
  for (const name of [`${longest}s`, `${longest}\\u0000`]) assertRefused(`{"${name}":"no"}`);
});

test('JsonContentReader: surrogate pairs are joined, and lone ones become U+FFFD', () => {
  assertContent('{"content":"\\ud83d\\ude00"}', '\u{1f600}');
  assertContent('{"content":"\\ud800\\udc00\\udbff\\udfff"}', '\u{10000}\u{10ffff}');
  // The second of two low halves does not make a pair with the first.
  assertContent('{"content":"\\udc00\\udc00\\udfff"}', '\ufffd\ufffd\ufffd');
  assertContent('{"content":"\\ud83d"}', '\ufffd');
  assertContent('{"content":"\\ude00\\ud83d"}', '\ufffd\ufffd');
  assertContent('{"content":"\\ud83dx\\ude00"}', '\ufffdx\ufffd');
  assertContent('{"content":"\\ud83d\\n\\ud83d\\ud83d\\ude00"}', '\ufffd\n\ufffd\u{1f600}');
  assertContent('{"content":"\\ud7ff\\ue000"}', '\ud7ff\ue000');
});

test('JsonContentReader: every UTF-16 code unit, escaped, decodes like JSON.parse', () => {
  const units = Array.from({ length: 0x10000 }, (_, unit) => `\\u${unit.toString(16).padStart(4, '0')} `);
  const document = `{"content":"${units.join('')}"}`;
  const { content } = JSON.parse(document) as { content: string };
  assert.equal(contentOf(document), content.toWellFormed());
});

test('JsonContentReader: a half surrogate in one string does not reach into the next', () => {
  assertContent('{"x":"\\ud83d","content":"\\ude00"}', '\ufffd');
});

test('JsonContentReader: refuses content that is missing, empty, no string, or given twice', () => {
  for (const document of [
    '{}', '{"x":"y"}', '{"content":""}', '{"content":null}', '{"content":1}', '{"content":["x"]}',
    '{"content":{"content":"x"}}', '{"content":true}', '{"content":"a","content":"b"}',
    '{"content":"a","\\u0063ontent":"b"}', '{"content":"","content":"b"}', '{"content":"a","content":1}',
  ]) {
    assertRefused(document);
  }
});

test('JsonContentReader: refuses a document that is no object', () => {
  for (const document of [
    '', ' ', '"content"', '[]', '[{"content":"x"}]', '["content",{"a":"x"}]', 'null', 'true', '1', 'content',
  ]) {
    assertRefused(document);
  }
});

test('JsonContentReader: refuses what is no JSON', () => {
  for (const document of [
    '{', '{"content', '{"content"', '{"content":', '{"content":"x', '{"content":"x"', '{"content":"x",}',
    '{"content":"x"}}', '{"content":"x"}x', '{"content":"x"}{"content":"x"}', '{"content":"x"},', '{,"content":"x"}',
    '{"content" "x"}', '{"content":"x" "y":1}', "{'content':'x'}", '{content:"x"}', '{"content":"x"]',
    '{"content":"x","a":[1}', '{"content":"x","a":[1,]}', '{"content":"x","a":[,1]}', '{"content":"x","a":}',
    '{"content":"x","a"}', '{"content":"x",1:2}', '/**/{"content":"x"}', '{"content":"x"}\0',
    '{"content":"x"}\u00a0', '\u00a0{"content":"x"}', '{\f"content":"x"}', '{"content"::"x"}', '{"content":"x",,}',
  ]) {
    assertRefused(document);
  }
});

test('JsonContentReader: refuses strings that are no JSON', () => {
  for (const text of [
    '\u0000', '\n', '\t', '\u001f', '\\', '\\x', '\\a', '\\U0041', '\\u', '\\u004', '\\u00g0', '\\u00G0', '\\u00/0',
    '\\u00:0', '\\u00@0', '\\u00`0', '\\u+041', '\\u 041', "\\'", '\\0',
  ]) {
    assertRefused(`{"content":"x${text}"}`);
    assertRefused(`{"content":"x","y":"${text}"}`);
    assertRefused(`{"content":"x","${text}":1}`);
  }
  assertContent('{"content":" \u007f\u0080"}', ' \u007f\u0080');
});

test('JsonContentReader: takes exactly the numbers and names of JSON', () => {
  for (const scalar of [
    '0', '-0', '7', '10', '-12', '0.0', '1.25', '1e1', '1E+1', '0e-0', '1.5e10', '9'.repeat(400), 'true', 'false',
    'null',
  ]) {
    assertContent(`{"content":"x","y":${scalar}}`, 'x');
    assertContent(`{"y":[${scalar},${scalar} ],"content":"x"}`, 'x');
  }
  for (const scalar of [
    '00', '01', '-', '-01', '+1', '.5', '1.', '1.e1', '1e', '1e+', '1e1.5', '--1', '1-', '0x1', '1_0', 'NaN',
    'Infinity', '-Infinity', 'tru', 'truee', 'True', 'nul', 'nulll', 'fals', 'undefined', 'tfalse', '1true', 'true1',
    '1 1',
  ]) {
    assertRefused(`{"content":"x","y":${scalar}}`);
    assertRefused(`{"content":"x","y":[${scalar}]}`);
  }
});

test('JsonContentReader: nesting is bounded', () => {
  assertContent(nested(63), 'x');
  assertContent(nested(64), 'x');
  assertRefused(nested(65));
  assert.equal(hintOf(nested(65)), 'nested over 64 deep: send text/plain, which is stored as it is');
  assert.equal(hintOf('{'), 'of another Content-Type, such as text/plain, a body is stored as it is');
});

test('JsonContentReader: refuses a byte order mark, and bytes that are no UTF-8', () => {
  assertRefused('\ufeff{"content":"x"}');
  for (const damage of ['80', 'c3', 'c0af', 'eda080', 'f5808080', 'ff', 'e282']) {
    const bytes = Buffer.from(damage, 'hex');
    assertRefused(Buffer.concat([Buffer.from('{"content":"x'), bytes, Buffer.from('"}')]));
    assertRefused(Buffer.concat([Buffer.from('{"content":"x","y":"'), bytes, Buffer.from('"}')]));
    assertRefused(Buffer.concat([Buffer.from('{"content":"x","'), bytes, Buffer.from('":1}')]));
    assertRefused(Buffer.concat([Buffer.from('{"content":"x"}'), bytes]));
  }
  assertRefused(Buffer.from('{"content":"x"}', 'utf16le'));
});

test('write: refuses content that can not be acceptable as soon as it comes, whatever may follow', () => {
  for (const document of [
    '{"content":1', '{"content":"a","content":"', '{"content":"\\x', '{"content":"\n', '{:', '{x:',
    '['.repeat(65), '{"content":[',
  ]) {
    const reader = new JsonContentReader(() => undefined);
    assert.throws(() => reader.write(Buffer.from(document)), Refusal, document);
  }
});

test('write: refuses a frame of more than 64 KiB when it comes; content in it is of any size', () => {
  const frame = (bytes: number): string => `{"x":"${'y'.repeat(bytes - '{"x":"","content":""}'.length)}","content":"`;
  assertContent(`${frame(MAX_FRAME_BYTES)}z"}`, 'z');
  assertContent(`${frame(MAX_FRAME_BYTES)}${'z'.repeat(200_000)}"}`, 'z'.repeat(200_000));
  assertRefused(`${frame(MAX_FRAME_BYTES + 1)}z"}`);
  assert.equal(hintOf(`${frame(MAX_FRAME_BYTES + 1)}z"}`), 'over 64 KiB beside content: send text/plain');
  for (const endless of [' ', '"x', '[]', 'x', '1', '{"content":"x"}\n', '{"content":"x","y":"']) {
    const reader = new JsonContentReader(() => undefined);
    const piece = Buffer.from(endless.at(-1)!.repeat(MAX_FRAME_BYTES));
    reader.write(Buffer.from(endless));
    assert.throws(() => reader.write(piece), Refusal, endless);
  }
});

test('write: passes content on before the document has ended, uncopied where nothing is escaped', () => {
  const taken: Uint8Array[] = [];
  const reader = new JsonContentReader((bytes) => {
    taken.push(bytes);
  });
  const first = Buffer.from('{"content":"abc');
  const second = Buffer.from('defgh');
  reader.write(first);
  reader.write(second);
  assert.equal(Buffer.concat(taken).toString(), 'abcdefgh');
  assert.deepEqual(taken.map((piece) => piece.buffer), [first.buffer, second.buffer]);
});

test('write: frees a piece that it has decoded, unless content or something else is in its memory', () => {
  const own = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
  const larger = own('\\n\\n');
  const pieces = [own('{"content":"a'), own('b'), own('c\\u00'), own('e9d'), larger.subarray(0, 2), own('\\"'), own('"}')];
  const taken: Uint8Array[] = [];
  const reader = new JsonContentReader((bytes) => {
    taken.push(bytes);
  });
  const left = pieces.map((piece) => (reader.write(piece), piece.length));
  reader.end();
  assert.equal(Buffer.concat(taken).toString(), 'abc\u00e9d\n"');
  assert.deepEqual(left, [13, 1, 5, 0, 2, 0, 2]);
  assert.equal(larger.length, 4);
});

test('write: frees a piece, and the copy that begins with a cut escape, once each, and nothing of an empty piece', (t) => {
  const freed: number[] = [];
  const { transfer } = ArrayBuffer.prototype;
  t.mock.method(ArrayBuffer.prototype, 'transfer', function note(this: ArrayBuffer, bytes?: number) {
    freed.push(this.byteLength);
    return transfer.call(this, bytes);
  });
  let length = 0;
  const reader = new JsonContentReader((bytes) => {
    length += bytes.length;
  });
  const escapes = '\\u0041'.repeat(11_000);
  const pieces = ['{"content":"\\u00', '', `41${escapes}`, escapes, '"}'].map((text) => Uint8Array.from(Buffer.from(text)));
  for (const piece of pieces) reader.write(piece.length === 0 ? NOTHING : piece);
  reader.end();
  // The first 4 bytes of the third piece's escape came with the first.
  assert.deepEqual(freed, [66_002, 66_006, 66_000]);
  assert.equal(length, 22_001);
  assert.equal((NOTHING.buffer as ArrayBuffer).detached, false);
});

test('write: one output for each piece of the document that holds content, and none for others', () => {
  const taken: string[] = [];
  const reader = new JsonContentReader((bytes) => {
    taken.push(Buffer.from(bytes).toString());
  });
  for (const piece of [
    '{"x":"y","cont', 'ent":"a\\nb\\u00', 'e9', 'c', '"', ',"z":"w"}',
  ]) {
    reader.write(Buffer.from(piece));
  }
  reader.end();
  assert.deepEqual(taken, ['a\nb', '\u00e9', 'c']);
});

test('write: is synchronous when the sink is, and the sink\'s promise is the source\'s to wait for', async () => {
  assert.equal(new JsonContentReader(() => undefined).write(Buffer.from('{"content":"x"}')), undefined);

  let release = (): void => undefined;
  const reader = new JsonContentReader(() => new Promise((resolve) => {
    release = resolve;
  }));
  assert.equal(reader.write(Buffer.from('{"content":')), undefined);
  const written = reader.write(Buffer.from('"x"'));
  assert.ok(written instanceof Promise);
  release();
  await written;
  assert.equal(reader.write(Buffer.from('}')), undefined);
  reader.end();
});

test('write: what the sink throws comes out unchanged', () => {
  const full = new Error('full');
  const reader = new JsonContentReader(() => {
    throw full;
  });
  assert.throws(() => reader.write(Buffer.from('{"content":"x"}')), full);
});
