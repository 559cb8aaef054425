// What must hold of each parser of outside input, whatever it is given: it refuses only in the one way that is its own,
// and what it accepts keeps the promise of its type. Each check tries one generated input and throws what is wrong.

import assert from 'node:assert/strict';
import { normaliseCommonName } from '../../src/authority/der.ts';
import { readCertificationRequest } from '../../src/authority/keys.ts';
import { ConfigError, loadConfig } from '../../src/config/load.ts';
import { type Setting, SETTINGS } from '../../src/config/settings.ts';
import { clientKey, isNetwork, parseAddress } from '../../src/core/callers.ts';
import { mediaTypeOf } from '../../src/core/content.ts';
import { JsonContentReader } from '../../src/core/json-content.ts';
import { Refusal, type RefusalName } from '../../src/core/refusals.ts';
import { challengeToken, isSigned, parseToken } from '../../src/crypto/digest.ts';
import { CERTIFICATE_FORMS, presentedCertificateSha1 } from '../../src/crypto/presented.ts';
import { HeaderLines, isWellFormedHost, parseTarget, prefersText } from '../../src/http/engine/head.ts';
import { presentedIdentity, SHA1_SOURCE } from '../../src/http/forwarded.ts';
import * as input from '../../src/http/input.ts';
import { page, parseRange, timeBounds, typeGlob } from '../../src/http/input.ts';
import { isWellFormedId } from '../../src/http/servers.ts';
import {
  certificationRequest, changedText, environment, jsonBody, listQuery, powToken, scrap,
} from './generated-texts.ts';
import { cutAtRandom, type Seeded } from './seeded.ts';

const POW_KEY = Buffer.from('a key of the test');
const NOW_SECONDS = 1_769_860_800;

/** What `attempt` gives, or undefined when it refused in one of these ways; any other throw is a finding. */
function unlessRefused<Result>(attempt: () => Result, ...names: readonly RefusalName[]): Result | undefined {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof Refusal && names.includes(error.refusal)) return undefined;
    throw error;
  }
}

function checkToken(random: Seeded): void {
  const token = powToken(random, POW_KEY, NOW_SECONDS);
  const parsed = parseToken(token);
  if (parsed === undefined) return;
  const purpose = random.pick(['paste', 'register'] as const);
  // For each challenge only one text is accepted as its token.
  if (isSigned(POW_KEY, purpose, parsed, token)) assert.equal(challengeToken(POW_KEY, purpose, parsed), token);
}

function checkCertificationRequest(random: Seeded): void {
  const key = unlessRefused(() => readCertificationRequest(certificationRequest(random)), 'csrInvalid');
  if (key !== undefined) assert.equal(key.length, 120);
}

function checkJsonContent(random: Seeded): void {
  const bytes = jsonBody(random, 'content');
  const received: Uint8Array[] = [];
  const content = unlessRefused(() => {
    const reader = new JsonContentReader((piece) => void received.push(Uint8Array.from(piece)));
    for (const piece of cutAtRandom(bytes, random, 1 + random.below(bytes.length + 1))) void reader.write(piece);
    reader.end();
    return Buffer.concat(received).toString();
  }, 'jsonInvalid');
  if (content === undefined) return;
  const wanted = (JSON.parse(Buffer.from(bytes).toString()) as { content: string }).content;
  assert.equal(content, wanted.toWellFormed());
}

function checkQuery(random: Seeded): void {
  const query = new URLSearchParams(listQuery(random));
  const found = unlessRefused(() => page(query, { fallback: 100, maximum: 1000 }), 'queryInvalid');
  if (found !== undefined) {
    assert.ok(Number.isSafeInteger(found.limit) && found.limit >= 1 && found.limit <= 1000);
    assert.ok(Number.isSafeInteger(found.offset) && found.offset >= 0);
  }
  const bounds = unlessRefused(() => timeBounds(query), 'queryInvalid');
  if (bounds !== undefined) assert.ok(Number.isSafeInteger(bounds.after) && Number.isSafeInteger(bounds.before));
  assert.doesNotMatch(unlessRefused(() => typeGlob(query), 'queryInvalid') ?? '', /\0|\*\*/);
}

function checkTarget(random: Seeded): void {
  const targets = [
    '/', '/abcdefgh/raw', '/pastes?limit=1', '*', 'http://paste.test/a?b', 'https://[::1]:8080', '/a%2e%2e/b', '/..',
  ];
  const target = Buffer.from(changedText(random.pick(targets), random)).toString('latin1');
  const parsed = unlessRefused(() => parseTarget(random.pick(['GET', 'OPTIONS']), target), 'targetInvalid');
  if (parsed === undefined) return;
  assert.match(parsed.path, /^\/|^\*$/);
  assert.doesNotMatch(parsed.path, /\\|#|\?|\/\.\.?(?:\/|$)/);
  if (parsed.authority !== undefined) assert.ok(isWellFormedHost(parsed.authority));
}

function checkHeaders(random: Seeded): void {
  const names = [
    'X-Expiry', 'X-Burn-After-Read', 'X-Paste-Password', 'X-PoW-Token', 'X-SSL-Client-SHA1', 'Client-Cert',
    'X-SSL-Client-Cert',
  ];
  const valid = ['60', 'true', 'é', 'a'.repeat(40), ':MIIB:', '-----BEGIN%20CERTIFICATE-----%0A', 'identity'];
  const lines = Array.from({ length: random.between(1, 5) }, () => {
    const text = random.oneIn(2) ? scrap(random) : changedText(random.pick(valid), random);
    return [random.pick(names), Buffer.from(text).toString('latin1')];
  });
  const headers = new HeaderLines(lines.flat());
  const ttlSeconds = unlessRefused(() => input.requestedTtlSeconds(headers), 'headerRepeated');
  assert.ok(ttlSeconds === undefined || ttlSeconds > 0);
  const password = unlessRefused(() => input.password(headers), 'headerRepeated', 'requestMalformed');
  assert.ok(password === undefined || password.isWellFormed());
  unlessRefused(() => [input.saysYes(headers, 'x-burn-after-read'), input.work(headers)], 'headerRepeated');
  const forms = (['client-cert', 'x-ssl-client-cert'] as const).map((name) => [name, CERTIFICATE_FORMS[name]] as const);
  for (const source of [SHA1_SOURCE, ...forms]) {
    assert.match(presentedIdentity(headers, source).fingerprint ?? '0'.repeat(40), /^[0-9a-f]{40}$/);
  }
}

function checkRange(random: Seeded): void {
  const size = random.pick([0, 1, 10, 65_536, Number.MAX_SAFE_INTEGER]);
  const header = random.pick(['bytes=0-9', 'bytes=-5', 'bytes=3-', 'bytes=1-2,4-5']);
  const range = parseRange(changedText(header, random), size);
  if (typeof range === 'string') return;
  assert.ok(range.start >= 0 && range.start < range.end && range.end <= size, JSON.stringify({ range, size }));
}

function checkAddress(random: Seeded): void {
  const addresses = [
    '192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1', 'fe80::1%eth0', '1:2:3:4:5:6:7:8', '10.0.0.0/8', '::/0',
  ];
  const text = changedText(random.pick(addresses), random);
  const bytes = parseAddress(text);
  assert.ok(bytes === undefined || bytes.length === (text.includes(':') ? 16 : 4));
  if (isNetwork(text)) assert.ok(Number(text.split('/')[1] ?? 0) <= (text.includes(':') ? 128 : 32), text);
  assert.equal(clientKey(clientKey(text)), clientKey(text));
}

function checkTexts(random: Seeded): void {
  const valid = random.pick(['alice', 'Zoë 😀', 'image/png; q=1', 'text/plain']);
  const text = random.oneIn(2) ? scrap(random) : changedText(valid, random);
  const name = normaliseCommonName(text);
  if (name !== undefined) assert.ok(name === normaliseCommonName(name) && name.isWellFormed());
  assert.match(mediaTypeOf(false, text), /^[a-z]+\/[a-z0-9!#$&^_.+-]+$/);
  assert.equal(mediaTypeOf(true, text), 'text/plain');
  assert.equal(isWellFormedId(text), /^[A-Za-z0-9]{6,64}$/.test(text) && !text.endsWith('\n'));
  prefersText([text, scrap(random)]);
  const sha1 = presentedCertificateSha1(Buffer.from(text, 'latin1'));
  assert.equal(sha1, undefined);
}

const NAMES = Object.values<Setting>(SETTINGS).map(({ name }) => name);

function checkSettings(random: Seeded): void {
  const given = environment(random, NAMES);
  const canary = 'canary of a secret value';
  const secret = random.oneIn(2) ? { SERVICE_PROXY_SECRET: canary, SERVICE_POW_SECRET: `${canary}\n\0` } : {};
  const readFile = (path: string | 0): string => {
    throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
  };
  try {
    const { config, warnings } = loadConfig({ ...given, ...secret }, readFile);
    assert.ok(Object.isFrozen(config));
    for (const warning of warnings) assert.doesNotMatch(warning, /\n/);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    assert.ok(error.problems.length > 0);
    for (const problem of error.problems) assert.doesNotMatch(problem, /\n|canary/);
  }
}

/** By name, for reports. */
export const GENERATED_CHECKS: Readonly<Record<string, (random: Seeded) => void>> = {
  token: checkToken,
  'certification request': checkCertificationRequest,
  'JSON content': checkJsonContent,
  query: checkQuery,
  target: checkTarget,
  headers: checkHeaders,
  range: checkRange,
  address: checkAddress,
  texts: checkTexts,
  settings: checkSettings,
};
