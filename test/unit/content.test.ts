import assert from 'node:assert/strict';
import test from 'node:test';
import { mediaTypeOf } from '../../src/core/content.ts';
import { sha256 } from '../../src/crypto/digest.ts';
import { createContentScan } from '../../src/pastes/intake.ts';

function factsOf(pieces: readonly Uint8Array[], entropy = false) {
  const scan = createContentScan(entropy);
  for (const piece of pieces) scan.update(piece);
  return scan.finish();
}

test('createContentScan: digest and text of content in pieces', () => {
  const bytes = Buffer.from('h\u00e9llo \u{1f600}');
  const facts = factsOf([bytes.subarray(0, 2), bytes.subarray(2, 9), bytes.subarray(9)]);
  assert.deepEqual(facts, { isText: true, sha256: sha256(bytes), entropyBits: undefined });
});

test('createContentScan: content is text only as a whole', () => {
  const [valid, invalid] = [Buffer.from('text'), Buffer.of(0xff)];
  for (const pieces of [[invalid], [invalid, valid], [valid, invalid], [valid, invalid, valid]]) {
    assert.equal(factsOf(pieces).isText, false);
  }
  const euro = Buffer.from('\u20ac');
  assert.equal(factsOf([euro.subarray(0, 1), euro.subarray(1)]).isText, true);
  assert.equal(factsOf([euro.subarray(0, 1)]).isText, false);
});

test('createContentScan: no content is text', () => {
  assert.deepEqual(factsOf([]), { isText: true, sha256: sha256(Buffer.alloc(0)), entropyBits: undefined });
});

test('createContentScan: the last bytes may come with the end, alone or after others', () => {
  const bytes = Buffer.from('h\u00e9llo \u{1f600}');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const scan = createContentScan(true);
    if (cut > 0) scan.update(bytes.subarray(0, cut));
    assert.deepEqual(scan.finish(bytes.subarray(cut)), factsOf([bytes], true), String(cut));
  }
});

test('createContentScan: entropy over all pieces, when asked for', () => {
  const pieces = [Buffer.from('ab'), Buffer.from('cd'), Buffer.from('abcd')];
  assert.equal(factsOf(pieces, true).entropyBits, 2);
  assert.equal(factsOf([], true).entropyBits, 0);
});

test('mediaTypeOf: text is text/plain, whatever it claims to be', () => {
  for (const claimed of [
    undefined, '', 'text/html', 'image/png', 'image/svg+xml', 'application/octet-stream', '\u0000',
  ]) {
    assert.equal(mediaTypeOf(true, claimed), 'text/plain', String(claimed));
  }
});

test('mediaTypeOf: binary content keeps a specific, inert type', () => {
  const inert = [
    'image/png', 'image/vnd.microsoft.icon', 'audio/ogg', 'audio/mpeg', 'video/mp4', 'video/3gpp', 'font/woff2',
    'image/x-0.9', 'image/x', 'application/pdf', 'application/zip', 'application/gzip', 'application/x-tar',
    'application/zstd', 'application/x-7z-compressed', 'application/x-xz', 'application/x-bzip2',
  ];
  for (const type of inert) assert.equal(mediaTypeOf(false, type), type);
});

test('mediaTypeOf: drops parameters and letter case', () => {
  for (const claimed of ['IMAGE/Png', 'image/png; charset=utf-8', ' image/png ', 'image/png;', 'image/png ;a="b;c"']) {
    assert.equal(mediaTypeOf(false, claimed), 'image/png', claimed);
  }
});

test('mediaTypeOf: binary content of any other claim is application/octet-stream', () => {
  const others = [
    undefined, '', 'text/plain', 'text/html', 'application/json', 'application/javascript', 'application/xhtml+xml',
    'application/x-zip-compressed', 'application/octet-stream', 'application/wasm', 'multipart/form-data; boundary=x',
    'message/rfc822', 'model/gltf-binary', 'imagex/png', 'x-image/png',
  ];
  for (const claimed of others) assert.equal(mediaTypeOf(false, claimed), 'application/octet-stream', String(claimed));
});

test('mediaTypeOf: markup that can hold scripts is never kept', () => {
  for (const claimed of [
    'image/svg+xml', 'image/SVG+XML', 'image/svg', 'image/svg-xml', 'image/svg+xml;a=b', 'image/x+xml', 'font/x+xml',
    'video/x+XML',
  ]) {
    assert.equal(mediaTypeOf(false, claimed), 'application/octet-stream', claimed);
  }
});

test('mediaTypeOf: a malformed type is application/octet-stream', () => {
  const malformed = [
    'image', 'image/', '/png', 'image/*', '*/*', 'image//png', 'image/png/x', 'image /png', 'image/ png',
    'image/p ng', 'image/png, image/gif', 'image/png\r\nX: y', 'image/png\n', 'image/p\u00e9', 'image/.png',
    '"image/png"', 'image/png x', 'image/\u212a', '\u017fmage/png',
  ];
  for (const claimed of malformed) assert.equal(mediaTypeOf(false, claimed), 'application/octet-stream', claimed);
});

test('mediaTypeOf: a type has at most 64 characters', () => {
  for (const [length, kept] of [[63, true], [64, true], [65, false], [128, false], [255, false]] as const) {
    const claimed = `image/${'a'.repeat(length - 6)}`;
    assert.equal(mediaTypeOf(false, claimed), kept ? claimed : 'application/octet-stream');
  }
});
