// http/paste-replies.ts: each answer is made once for a paste in memory, and is the content byte for byte. What is in
// the answers, over sockets: test/api/read-paste.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPasteReplies } from '../../src/http/handlers/pastes.ts';
import { asFound, inlinePaste, patternedBytes } from '../support/store.ts';

test('createPasteReplies: the same reply for the same paste, another one for a paste that was read anew', () => {
  const replies = createPasteReplies();
  const content = patternedBytes(10);
  const paste = asFound(inlinePaste(content));
  assert.equal(replies.metadata(paste), replies.metadata(paste));
  assert.equal(replies.content(paste, content), replies.content(paste, content));
  const readAnew = { ...paste };
  assert.notEqual(replies.metadata(readAnew), replies.metadata(paste));
  assert.deepEqual(replies.metadata(readAnew), replies.metadata(paste));
  assert.notEqual(replies.content(readAnew, content), replies.content(paste, content));
  assert.deepEqual(replies.content(readAnew, content), replies.content(paste, content));
});

test('createPasteReplies: the head says what the whole answer says', () => {
  const replies = createPasteReplies();
  for (const burnAfterRead of [false, true]) {
    const content = patternedBytes(10);
    const paste = asFound(inlinePaste(content, { burnAfterRead }));
    const { body, ...head } = replies.content(paste, content);
    assert.deepEqual(replies.head(paste), head);
    assert.equal('ETag' in head.headers, !burnAfterRead);
  }
});
