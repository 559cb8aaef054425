// The checks of the content itself over real sockets: minimum size, minimum entropy, binary-only. Which comes first is
// check-order.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binaryContent, startApp } from '../support/app.ts';
import { assertError, assertStored, post, postChunked, type Answer } from '../support/posting.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const HINT = 'compress or encrypt the content first';

/** That many byte values from 0 up, each `times` times: an entropy of log2(values) bits per byte. */
function evenBytes(values: number, times: number): Uint8Array {
  return Uint8Array.from({ length: values * times }, (_, position) => position % values);
}

test('POST /: the minimum size is a boundary, in bytes of the content, however it comes', async (t) => {
  // More than a paste has in its row, so that content below the minimum is taken in by both ways.
  const minBytes = 70_000;
  const app = await startApp(t, { minBytes });
  const error = 'paste smaller than minimum size';
  for (const size of [1, 65_536, 65_537, minBytes - 1]) {
    const members = { size, min_size: minBytes };
    const content = 'x'.repeat(size);
    assertError(await post(app, content), 400, error, members);
    assertError(await postChunked(app, Buffer.from(content)), 400, error, members);
    assertError(await post(app, JSON.stringify({ content }), JSON_TYPE), 400, error, members);
  }
  assertError(await post(app, ''), 400, 'no content provided');
  for (const content of ['x'.repeat(minBytes), 'x'.repeat(minBytes + 1), '\u00e9'.repeat(minBytes / 2)]) {
    assertStored(await post(app, content));
    assertStored(await post(app, JSON.stringify({ content }), JSON_TYPE));
  }
});

test('POST / with a minimum entropy of 7 bits per byte', async (t) => {
  const app = await startApp(t, { minEntropyBits: 7, minEntropyBytes: 256 });
  const assertTooLow = (answer: Answer, entropy: number): void =>
    assertError(answer, 400, 'entropy below minimum', { hint: HINT, entropy, min_entropy: 7 });

  await t.test('POST /: content below the minimum is refused with its entropy, at and above it is taken', async () => {
    const exact = evenBytes(128, 4);
    assertStored(await post(app, exact), 'exactly 7 bits');
    assertStored(await post(app, evenBytes(129, 4)), 'a little more');
    assertStored(await post(app, evenBytes(256, 4)), '8 bits');
    for (const [values, bits] of [[1, 0], [2, 1], [4, 2], [64, 6]] as const) {
      assertTooLow(await post(app, evenBytes(values, 1024 / values)), bits);
    }
    // One byte in place of another: 6.9993 bits, as near below 7 as content of this size gets.
    assertTooLow(await post(app, exact.with(0, exact[1]!)), 6.999);
  });

  await t.test('POST /: the entropy told is never rounded up to the minimum', async () => {
    const almost = evenBytes(128, 8192);
    assertTooLow(await post(app, almost.with(0, 1)), 6.999);
    assertStored(await post(app, almost));
  });

  await t.test('POST /: content smaller than the size for the check is exempt from it', async () => {
    assertStored(await post(app, 'x'.repeat(255)));
    for (const length of [256, 257]) assertTooLow(await post(app, 'x'.repeat(length)), 0);
    const documentOf = (length: number): string => JSON.stringify({ content: 'x'.repeat(length) });
    assertStored(await post(app, documentOf(255), JSON_TYPE), 'the content counts, not the document');
    assertTooLow(await post(app, documentOf(256), JSON_TYPE), 0);
    assertTooLow(await postChunked(app, Buffer.alloc(100_000)), 0);
  });

  await t.test('POST /: English text and encrypted data lie where they are said to', async () => {
    const english = 'The quick brown fox jumps over the lazy dog, and it does so again and again. '.repeat(20);
    const { json } = await post(app, english);
    assert.ok(Number(json['entropy']) > 4 && Number(json['entropy']) < 5, JSON.stringify(json));
    assertStored(await post(app, binaryContent(2000)));
  });
});

test('POST /: binary-only refuses whatever is valid UTF-8, and takes what has one byte that is not', async (t) => {
  const app = await startApp(t, { requireBinary: true });
  const error = 'recognizable content: only binary content is accepted';
  const members = { hint: HINT, detected: 'text/plain' };
  const text = Buffer.from('na\u00efve \u{1f600}');
  for (const content of ['x', '\0', text, '<html>', '\ufeffx', 'x'.repeat(100_000)]) {
    assertError(await post(app, content), 400, error, members);
  }
  assertError(await post(app, text, { 'Content-Type': 'image/png' }), 400, error, members);
  assertError(await postChunked(app, text), 400, error, members);
  assertError(await post(app, '{"content": "\\ud800"}', JSON_TYPE), 400, error, members);

  const binary = [
    [0xff], [...text, 0x80], [0xc3, ...text], [...text.subarray(0, -1)], [0xc0, 0x80], [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
  ];
  for (const bytes of binary) assertStored(await post(app, Uint8Array.from(bytes)), String(bytes));
  assertStored(await post(app, Buffer.concat([Buffer.alloc(100_000, 'x'), Uint8Array.of(0xff)])));
  assertError(await post(app, ''), 400, 'no content provided');
});
