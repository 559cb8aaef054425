// http/handlers/pastes.ts: each answer is made once for a paste in memory, and is the content byte for byte. What is in
// the answers, over sockets: test/api/read-paste.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentHead, contentReply, metadataReply } from '../../src/http/handlers/pastes.ts';
import { asFound, inlinePaste, patternedBytes } from '../support/store.ts';

test('the same reply for the same paste, another one for a paste that was read anew', () => {
  const content = patternedBytes(10);
  const paste = asFound(inlinePaste(content));
  assert.equal(metadataReply(paste), metadataReply(paste));
  assert.equal(contentReply(paste, content), contentReply(paste, content));
  const readAnew = { ...paste };
  assert.notEqual(metadataReply(readAnew), metadataReply(paste));
  assert.deepEqual(metadataReply(readAnew), metadataReply(paste));
  assert.notEqual(contentReply(readAnew, content), contentReply(paste, content));
  assert.deepEqual(contentReply(readAnew, content), contentReply(paste, content));
});

test('the head says what the whole answer says', () => {
  for (const burnAfterRead of [false, true]) {
    const content = patternedBytes(10);
    const paste = asFound(inlinePaste(content, { burnAfterRead }));
    const { body, ...head } = contentReply(paste, content);
    assert.deepEqual(contentHead(paste), head);
    assert.equal('ETag' in head.headers, !burnAfterRead);
  }
});

test('images and text are shown inline, and nothing else', () => {
  const dispositionOf = (mimeType: string): string | undefined => {
    const { headers } = contentHead({ ...asFound(inlinePaste(patternedBytes(10))), id: 'abcdef', mimeType });
    return headers['Content-Disposition'];
  };
  for (const type of ['text/plain', 'image/png']) assert.equal(dispositionOf(type), 'inline', type);
  for (const type of [
    'application/octet-stream', 'application/pdf', 'video/mp4', 'audio/ogg', 'font/woff2', 'x/image/',
  ]) {
    assert.equal(dispositionOf(type), 'attachment; filename="abcdef"', type);
  }
});
