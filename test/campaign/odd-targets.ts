// Odd request targets (RFC 9112 section 3.2): segments, characters, escapes, the four forms, and how long they are.

import { asking, refused, served, type OddRequest } from './odd-request.ts';

/** Well-framed, so that the connection serves what comes after. */
const SERVED: readonly (readonly [target: string, ...statuses: number[]])[] = [
  ['/../health', 400], ['/health/..', 400], ['/./health', 400], ['/.', 400], ['/..', 400], ['/a/./b', 400],
  ['/%2e/health', 400], ['/%2e%2e/health', 400], ['/%2E%2e/', 400], ['/.%2e/health', 400], ['/a/%2e%2e', 400],
  ['/a/../../../../etc/passwd', 400], ['/..%2fhealth', 400], ['/%2e%2e%2fhealth', 400], ['/..;/health', 404],
  ['/.../health', 404], ['/..\\health', 400], ['/\\health', 400], ['/health\\', 400], ['/a\\..\\health', 400],
  ['/#', 400], ['/health#a', 400], ['/?a#b', 400], ['/#?a', 400],
  ['//', 404], ['//health', 404], ['///', 404], ['//paste.example/health', 404], ['/health/', 404], ['/health//', 404],
  ['/health;a=b', 400], ['/health%20', 400], ['/health%00', 400], ['/health%0d%0aX:%20y', 400], ['/%68ealth', 400],
  ['/%', 400], ['/%2', 400], ['/%zz', 400], ['/%00', 400], ['/%ff%fe', 400], ['/%c0%ae%c0%ae/', 404],
  ['/%252e%252e/', 404],
  ['/%u002e', 400], ['/%2fhealth', 400], ['/HEALTH', 404, 400], ['/Health', 404], ['/"', 400], ['/<script>', 400],
  ['/{id}', 400], ['/|', 400], ['/^', 400], ['/`', 400], ['/$(id)', 400], ['/a:b', 400], ['/@', 400], ['/*', 400],
  ['/health*', 400],
  ['/?', 200], ['/??', 200], ['/health?', 200], ['/health?%zz', 200], ['/health?../..', 200], ['/health?\\', 200],
  ['/health?a=/../b', 200], ['/health?\'"<>', 200], ['/pastes?limit=%zz', 401], ['/pastes?limit=1&limit=2', 401],
  ['*', 400], ['*/health', 400], ['/etc/passwd', 404], ['/.git/config', 404], ['/constructor', 404],
  ['/__proto__', 400],
  ['/toString/raw', 404], ['/aaaaa', 400], [`/${'a'.repeat(65)}`, 400], [`/${'a'.repeat(8000)}`, 400],
  [`/${'/a'.repeat(5000)}`, 404],
  [`/health?${'a'.repeat(12_000)}`, 200], [`/health?${'&a'.repeat(6000)}`, 200], [`/${'%2e'.repeat(4000)}`, 400],
  ['http://paste.example/health', 200], ['HTTP://PASTE.EXAMPLE/health', 200], ['https://paste.example/health', 200],
  ['http://elsewhere.example/health', 200], ['http://paste.example', 200], ['http://paste.example?a', 200],
  ['http://[::1]/health', 200], ['http://127.0.0.1:80/health', 200], ['http://paste.example:0/', 400],
  ['http://paste.example:65536/', 400], ['http://paste.example:/', 400], ['http://paste.example:x/', 400],
  ['http://[::1/', 400], ['http://::1/', 400], ['http://a@paste.example/', 400], ['http://a:b@paste.example/', 400],
  ['http://paste.example/../health', 400], ['http://paste.example/#a', 400],
  ['http:///health', 400], ['http://', 400], ['ftp://paste.example/', 400],
  ['ws://paste.example/', 400], ['file:///etc/passwd', 400], ['http://%31/', 400],
];

/** Targets that node's parser refuses: the framing of such a request may be anything. */
const ENDED: readonly (readonly [name: string, target: string])[] = [
  ['a NUL', '/health\0'], ['a control character', '/health\x01'], ['a tab', '/a\tb'], ['DEL', '/a\x7fb'],
  ['a byte above ASCII', '/\xe9'], ['UTF-8', '/\xc3\xa9'], ['a form feed', '/a\x0cb'], ['no slash', 'health'],
  ['a query alone', '?a=b'], ['a host alone', 'paste.example:80'], ['an escape in place of the slash', '%2fhealth'],
  ['a vertical tab', '/a\x0bb'], ['a backslash alone', '\\'], ['one slash after its scheme', 'http:/health'],
  ['no slash after its scheme', 'http:health'], ['code in it', 'javascript:alert(1)'],
  ['a backslash in its authority', 'http://paste.example\\@elsewhere.example/'],
];

export const ODD_TARGETS: readonly OddRequest[] = [
  ...SERVED.map(([target, ...statuses]) => {
    const name = target.length > 60 ? `${target.slice(0, 20)}... of ${target.length} bytes` : target;
    return served(`GET ${name}`, asking(`GET ${target} HTTP/1.1`), ...statuses);
  }),
  ...ENDED.map(([name, target]) => refused(`a target with ${name}`, asking(`GET ${target} HTTP/1.1`))),
  refused('a target of 17 000 bytes', asking(`GET /${'a'.repeat(17_000)} HTTP/1.1`), 431),
  refused('a query of 60 000 bytes', asking(`GET /?${'a'.repeat(60_000)} HTTP/1.1`), 431),
  served('OPTIONS *', asking('OPTIONS * HTTP/1.1'), 204),
  served('OPTIONS *x', asking('OPTIONS *x HTTP/1.1'), 400),
  served('OPTIONS of a host', asking('OPTIONS http://paste.example HTTP/1.1'), 204),
  served('OPTIONS of nothing', asking('OPTIONS /a/b/c HTTP/1.1'), 404),
  served('HEAD of nothing', asking('HEAD /a/b/c HTTP/1.1'), 404),
  served('DELETE of the index', asking('DELETE / HTTP/1.1'), 405),
  served('a target that is another host than Host', asking('GET http://elsewhere.example/ HTTP/1.1'), 200),
];
