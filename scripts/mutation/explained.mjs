// Mutants that behave as the original does, each with the reason: by file, the line as it is written, and the line with
// the mutant. mutate.mjs fails when one of them is killed or is there no more, so that nothing stale stays.

/** One group of mutants of a line that are equal for the same reason. */
const same = (why, source, ...mutants) => mutants.map((mutant) => ({ source, mutant, why }));

/** A file may be named more than once, by what its mutants are about. */
function byFile(groups) {
  const files = Map.groupBy(groups, ([path]) => path);
  return Object.fromEntries([...files].map(([path, ofFile]) => [path, ofFile.flatMap(([, mutants]) => mutants)]));
}

export const EXPLAINED = byFile([
  ['src/core/bytes.ts', same(
    'nobody keeps what the memory is moved to',
    'if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);',
    'if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(1);',
  )],
  ['src/core/addresses.ts', same(
    'only spares work: what is longer has a part that fits no octet or group, or too many parts',
    'if (text.length > LONGEST_ADDRESS) return undefined;',
    'if (false) return undefined;',
  )],
  ['src/core/callers.ts', same(
    'only the first part is looked at',
    "const [withoutZone = ''] = address.split('%', 1);",
    "const [withoutZone = ''] = address.split('%', 2);",
  )],
  ['src/core/content.ts', [
    ...same(
      'one more place that stays 0, and 0 adds nothing to the entropy',
      'const histogram = entropy ? new Float64Array(256) : undefined;',
      'const histogram = entropy ? new Float64Array(257) : undefined;',
    ),
    ...same(
      'past the end there is no byte, and no such place; entropy is of shares, so counting by twos is the same',
      'for (let position = 0; position < bytes.length; position += 1) histogram[bytes[position]!]! += 1;',
      'for (let position = 0; position <= bytes.length; position += 1) histogram[bytes[position]!]! += 1;',
      'for (let position = 0; position < bytes.length; position += 1) histogram[bytes[position]!]! += 2;',
    ),
  ]],
  ['src/core/content.ts', same(
    'past the end the count is undefined, which is not above 0',
    'for (let value = 0; value < histogram.length; value += 1) {',
    'for (let value = 0; value <= histogram.length; value += 1) {',
  )],
  ['src/core/ids.ts', [
    ...same('further up than what is pending, where no one looks', 'let pending = 0;', 'let pending = 1;'),
    ...same(
      'a character is made with the next byte, or after the last one, of the same bits',
      'while (pendingBits >= 5) {',
      'while (pendingBits > 5) {',
      'while (pendingBits >= 6) {',
    ),
  ]],
  ['src/core/json-content.ts', [
    ...same('room that is not used', 'const HELD_BACK_BYTES = 6;', 'const HELD_BACK_BYTES = 7;'),
    ...same('begin() comes before the first byte', 'let capacity = 0;', 'let capacity = 1;'),
  ]],
  ['src/core/json-content.ts', [
    ...same('reset() comes before the first character', 'let matched = 0;', 'let matched = 1;'),
    ...same(
      'any number above the length of the name means the same',
      'matched = character === wanted[matched] ? matched + 1 : wanted.length + 1;',
      'matched = character === wanted[matched] ? matched + 1 : wanted.length + 2;',
    ),
  ]],
  ['src/core/json-string.ts', same(
    'the first byte has been read before it is asked whether this may be the end',
    'const start = state(false);',
    'const start = state(true);',
  )],
  ['src/core/json-string.ts', [
    ...same(
      'a place for no byte',
      'const ORDINARY = Uint8Array.from({ length: 256 }, (_, byte) =>',
      'const ORDINARY = Uint8Array.from({ length: 257 }, (_, byte) =>',
    ),
    ...same(
      'the same in the 21 bits that are written; the rest is cut off by bytes whose upper bits are set anyway',
      'const codePoint = 0x10000 + ((highSurrogate - 0xd800) << 10) + (unit - 0xdc00);',
      'const codePoint = 0x10000 + ((highSurrogate + 0xd800) << 10) + (unit - 0xdc00);',
    ),
    ...same(
      'past the end there is no byte, and so none that is ordinary',
      'while (end < bytes.length && ORDINARY[bytes[end]!] === 1) end += 1;',
      'while (end <= bytes.length && ORDINARY[bytes[end]!] === 1) end += 1;',
    ),
  ]],
  ['src/core/names.ts', same(
    'one more column, which nobody reads',
    'let previous = Array.from({ length: b.length + 1 }, (_, column) => column);',
    'let previous = Array.from({ length: b.length + 2 }, (_, column) => column);',
  )],
  ['src/core/content.ts', [
    ...same('room that is not used', 'const MAX_SEQUENCE_BYTES = 4;', 'const MAX_SEQUENCE_BYTES = 5;'),
    ...same(
      'the line above has taken that byte',
      'if (lead >= 0xe0 && lead <= 0xef) return 3;',
      'if (lead >= 0xe0 && lead <= 240) return 3;',
    ),
    ...same(
      'the line above has taken that byte',
      'if (lead >= 0xc2 && lead <= 0xdf) return 2;',
      'if (lead >= 0xc2 && lead <= 224) return 2;',
    ),
    ...same(
      'further from the end no sequence is cut off',
      'const earliest = Math.max(start, bytes.length - (MAX_SEQUENCE_BYTES - 1));',
      'const earliest = Math.max(start, bytes.length - (MAX_SEQUENCE_BYTES + 1));',
    ),
  ]],
  ['src/core/ids.ts', same(
    'of one digit only the lowest two bits are wanted',
    "const variant = '89ab'[Number.parseInt(digits.charAt(16), 16) & 3];",
    "const variant = '89ab'[Number.parseInt(digits.charAt(16), 17) & 3];",
  )],
  ['src/crypto/crl.ts', [
    ...same(
      'how often other work gets a turn: a matter of time alone',
      'const ENTRIES_A_TURN = 200;',
      'const ENTRIES_A_TURN = 201;',
    ),
    ...same(
      'how often other work gets a turn: a matter of time alone',
      'if (entries.length < ENTRIES_A_TURN) continue;',
      'if (true) continue;',
      'if (false) continue;',
      'if (entries.length <= ENTRIES_A_TURN) continue;',
      'if (entries.length >= ENTRIES_A_TURN) continue;',
    ),
  ]],
  ['src/crypto/csr.ts', same(
    'the reader of DER throws nothing else; were it to, that must not be told as the maker\'s mistake',
    'if (!(error instanceof DerError)) throw error;',
    'if (false) throw error;',
  )],
  ['src/crypto/der-reader.ts', [
    ...same(
      'an INTEGER has at least one octet, and what has none is refused for its tag',
      'const isNegative = (element.content[0] ?? 0) >= 0x80;',
      'const isNegative = (element.content[0] ?? 1) >= 0x80;',
    ),
    ...same(
      'the check of where the content begins, below, says the same of it',
      'if (start + 1 >= end) throw new DerError(`value cut off at byte ${start}`);',
      'if (false) throw new DerError(`value cut off at byte ${start}`);',
      'if (start - 1 >= end) throw new DerError(`value cut off at byte ${start}`);',
      'if (start + 1 > end) throw new DerError(`value cut off at byte ${start}`);',
    ),
    ...same(
      'nothing is neither below nor above 0x80',
      'if (second === undefined) return true;',
      'if (false) return true;',
    ),
    ...same('any number above 7', 'const [unused = 8] = content;', 'const [unused = 9] = content;'),
    ...same(
      'of the count itself the lowest so many bits are zero only when it is 0',
      'const last = content.length > 1 ? content.at(-1) : undefined;',
      'const last = true ? content.at(-1) : undefined;',
      'const last = content.length >= 1 ? content.at(-1) : undefined;',
    ),
    ...same(
      'any number below 0x80',
      'return content.every((octet, i) => octet !== 0x80 || (content[i - 1] ?? 0) >= 0x80);',
      'return content.every((octet, i) => octet !== 0x80 || (content[i - 1] ?? 1) >= 0x80);',
    ),
    ...same(
      '0x80 with its lower bits is 0 as well',
      'const lengthOctets = first < 0x80 ? 0 : first & 0x7f;',
      'const lengthOctets = first <= 0x80 ? 0 : first & 0x7f;',
      'const lengthOctets = first < 129 ? 0 : first & 0x7f;',
    ),
  ]],
  ['src/crypto/der.ts', [
    ...same(
      'a sign is no hex digit: no octet is left, and that is refused in the same way',
      'if (value < 0) throw new RangeError(`negative INTEGER: ${value}`);',
      'if (false) throw new RangeError(`negative INTEGER: ${value}`);',
    ),
    ...same(
      'the point behind the seconds is dropped with all that is no digit',
      "const digits = new Date(unixSeconds * 1000).toISOString().slice(0, 19).replace(/\\D/g, '');",
      "const digits = new Date(unixSeconds * 1000).toISOString().slice(0, 20).replace(/\\D/g, '');",
    ),
  ]],
  ['src/crypto/passwords.ts', [
    ...same(
      'the pattern gives all its parts or none',
      'if (salt === undefined || key === undefined || count < MIN_ITERATIONS || count > MAX_ITERATIONS) {',
      'if (salt === undefined && key === undefined || count < MIN_ITERATIONS || count > MAX_ITERATIONS) {',
    ),
    ...same(
      'exactly the bound takes seconds to try, and nothing of ours writes it',
      'if (salt === undefined || key === undefined || count < MIN_ITERATIONS || count > MAX_ITERATIONS) {',
      'if (salt === undefined || key === undefined || count < MIN_ITERATIONS || count >= MAX_ITERATIONS) {',
    ),
  ]],
  ['src/crypto/keys.ts', [
    ...same(
      'a bound on time alone: one more takes no longer, and is refused for its password',
      'const MAX_ITERATIONS = 10_000_000;',
      'const MAX_ITERATIONS = 10000001;',
    ),
    ...same(
      'exactly the bound takes seconds to try, and nothing of ours writes it',
      "if (!same || parameters.iterations > MAX_ITERATIONS) throw new DerError('unsupported encryption');",
      "if (!same || parameters.iterations >= MAX_ITERATIONS) throw new DerError('unsupported encryption');",
    ),
  ]],
  ['src/crypto/keys.ts', same(
    'a block under another label, or none, is not the block that is written again below',
    'if (label === undefined) return undefined;',
    'if (false) return undefined;',
  )],
  ['src/crypto/pkcs12-kdf-thread.ts', [
    ...same('a thread without a job does not answer', 'running?.resolve(derived);', 'running.resolve(derived);'),
    ...same('nor does it end but by close()', 'running?.reject(error);', 'running.reject(error);'),
    ...same(
      'costs are only compared, and all are one more',
      'return Object.values(requests).reduce((sum, { iterations }) => sum + iterations, 0);',
      'return Object.values(requests).reduce((sum, { iterations }) => sum + iterations, 1);',
    ),
  ]],
  ['src/crypto/pkcs12.ts', [
    ...same(
      'one block more than is taken',
      'for (let derivedBytes = 0; derivedBytes < size; ) {',
      'for (let derivedBytes = 0; derivedBytes <= size; ) {',
    ),
    ...same(
      'past the end there is no octet to change',
      'for (let start = 0; start < I.length; start += BLOCK_BYTES) {',
      'for (let start = 0; start <= I.length; start += BLOCK_BYTES) {',
    ),
  ]],
  ['src/crypto/pkcs12.ts', same('the secret is overwritten all the same', 'secretBytes.fill(0);', 'secretBytes.fill(1);')],
  ['src/crypto/pow-token.ts', same(
    'the pattern gives all its parts or none',
    'if (nonce === undefined || signed === undefined) return undefined;',
    'if (nonce === undefined && signed === undefined) return undefined;',
  )],
  ['src/crypto/keys.ts', same(
    'the secret is overwritten all the same',
    'secretBytes.fill(0);',
    'secretBytes.fill(1);',
  )],
  ['src/crypto/digest.ts', [
    ...same('how much is drawn at a time: a matter of time alone', 'const POOL_BYTES = 2048;', 'const POOL_BYTES = 2049;'),
    ...same(
      'what is drawn together with others: as random as what is drawn by itself',
      'const MOST_POOLED_BYTES = 16;',
      'const MOST_POOLED_BYTES = 17;',
    ),
    ...same(
      'what is drawn together with others: as random as what is drawn by itself',
      'if (size > MOST_POOLED_BYTES) return nodeRandomBytes(size);',
      'if (true) return nodeRandomBytes(size);',
      'if (size >= MOST_POOLED_BYTES) return nodeRandomBytes(size);',
    ),
    ...same('of an empty pool, or of its first byte, which is then left out', 'let handedOut = 0;', 'let handedOut = 1;'),
    ...same('of an empty pool, or of its first byte, which is then left out', 'handedOut = 0;', 'handedOut = 1;'),
    ...same(
      'the pool is drawn anew earlier than it must be',
      'if (handedOut + size > pool.length) {',
      'if (true) {',
      'if (handedOut + size >= pool.length) {',
    ),
    ...same(
      'what was handed out is overwritten all the same',
      'pool.fill(0, start, handedOut);',
      'pool.fill(1, start, handedOut);',
    ),
  ]],
  ['src/crypto/pkcs12-kdf-worker.ts', [
    ...same(
      'in a worker thread there is a port',
      "parentPort?.on('message', (requests: Readonly<Record<string, KdfRequest>>) => {",
      "parentPort.on('message', (requests: Readonly<Record<string, KdfRequest>>) => {",
    ),
    ...same(
      'in a worker thread there is a port',
      'parentPort?.postMessage(Object.fromEntries(derived));',
      'parentPort.postMessage(Object.fromEntries(derived));',
    ),
  ]],
  ['src/service/authority.ts', same(
    'makes nothing: create() looks as well, and that there is one is no failure here',
    'if ((await find()) === undefined) await createDefault(requester);',
    'if (true) await createDefault(requester);',
  )],
  ['src/service/content-rules.ts', same(
    'measures what is not asked for: none is below 0',
    'scan: createContentScan({ sha256: SHA256, entropy: config.minEntropyBits > 0 }),',
    'scan: createContentScan({ sha256: SHA256, entropy: config.minEntropyBits >= 0 }),',
  )],
  ['src/service/identity.ts', same(
    'any share from 1 on: what has run out is pruned when no more keys fit',
    'const failures = createSlidingWindow({ windowMs, maxKeys: FAILURE_CLIENTS, cleanupThreshold: 1 });',
    'const failures = createSlidingWindow({ windowMs, maxKeys: FAILURE_CLIENTS, cleanupThreshold: 2 });',
  )],
  ['src/service/passwords.ts', same(
    'only spares the counting: code points are no more than units',
    'if (password === undefined || password.length <= MAX_PASSWORD_LENGTH) return;',
    'if (password === undefined || password.length < MAX_PASSWORD_LENGTH) return;',
  )],
]);
