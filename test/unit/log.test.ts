// ops/log.ts: what lines look like, that no value can forge one, and when they are written. And what is said of errors.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { codeOf, type LogEntry, reasonOf } from '../../src/core/events.ts';
import { createLog } from '../../src/ops/log.ts';
import { movableClock } from '../support/clock.ts';

type Format = 'text' | 'json';

const TIME = '2026-11-20T12:00:00.123Z';

const REQUEST: LogEntry = {
  level: 'info',
  logger: 'http',
  event: 'request',
  outcome: 'success',
  clientIp: '192.0.2.7',
  details: { method: 'GET', route: '/{id}/raw', status: 200, bytes: 1024, ms: 1.2345, id: 'a-1' },
};

function startLog(format: Format, options: { taken?: () => boolean; forJournal?: boolean } = {}) {
  const clock = movableClock(Date.parse(TIME));
  const written: string[] = [];
  const writes = new EventEmitter();
  const write = (text: string): boolean => {
    if (options.taken?.() === false) return false;
    written.push(text);
    writes.emit('write');
    return true;
  };
  const { forJournal = false } = options;
  return { ...createLog({ format, forJournal, write, clock }), clock, written, writes };
}

/** The one line that the entry becomes. */
function lineOf(format: Format, entry: LogEntry, forJournal = false): string {
  const { log, flush, written } = startLog(format, { forJournal });
  log(entry);
  flush();
  const text = written.join('');
  assert.equal(text.indexOf('\n'), text.length - 1, 'exactly one line');
  return text.slice(0, -1);
}

interface JsonLine {
  readonly time: string;
  readonly level: string;
  readonly logger: string;
  readonly event: string;
  readonly details: Record<string, unknown>;
}

function parsedLines(written: readonly string[]): JsonLine[] {
  return written.join('').trimEnd().split('\n').map((line) => JSON.parse(line) as JsonLine);
}

test('createLog json: exactly the fields of the contract, in UTC with milliseconds', () => {
  const clientId = 'a'.repeat(40);
  const line = lineOf('json', { ...REQUEST, clientId });
  assert.deepEqual(JSON.parse(line), {
    time: TIME,
    level: 'info',
    logger: 'http',
    event: 'request',
    outcome: 'success',
    client_id: clientId,
    client_ip: '192.0.2.7',
    details: { method: 'GET', route: '/{id}/raw', status: 200, bytes: 1024, ms: 1.2345, id: 'a-1' },
  });
});

test('createLog json: a field with nothing to say is null, details are an object', () => {
  assert.deepEqual(JSON.parse(lineOf('json', { level: 'error', logger: 'main', event: 'stopped' })), {
    time: TIME, level: 'error', logger: 'main', event: 'stopped', outcome: null, client_id: null, client_ip: null,
    details: {},
  });
});

test('createLog text: a request in the words of people', () => {
  assert.equal(
    lineOf('text', REQUEST),
    `${TIME} info  http  request  GET /{id}/raw 200 1024 B 1.2 ms outcome=success client_ip=192.0.2.7 id=a-1`,
  );
});

test('createLog text: other events as name=value, in quotes where the end would be unclear', () => {
  const entry: LogEntry = {
    level: 'warning',
    logger: 'store',
    event: 'storage full',
    outcome: 'failure',
    clientId: 'b'.repeat(40),
    details: {
      free: 0, path: '/a b', empty: '', quote: 'a"b', equal: 'a=b', ok: false, none: null, back: '\\', method: 'GET',
    },
  };
  assert.equal(
    lineOf('text', entry),
    `${TIME} warning  store  storage full  outcome=failure client_id=${'b'.repeat(40)} ` +
      'free=0 path="/a b" empty="" quote="a\\"b" equal="a=b" ok=false none=null back="\\\\" method=GET',
  );
  assert.equal(lineOf('text', { level: 'info', logger: 'main', event: 'stopped' }), `${TIME} info  main  stopped`);
});

/** Line ends in any viewer, terminal controls (C0, DEL, C1), and characters that change the direction of text. */
const UNSAFE = [
  ...Array.from({ length: 0x20 }, (_, code) => code), 0x7f, ...Array.from({ length: 0x20 }, (_, code) => 0x80 + code),
  0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069,
].map((code) => String.fromCharCode(code));

test('createLog: no value gets an unsafe character into a line, whatever the format and the field', () => {
  for (const format of ['json', 'text'] as const) {
    for (const character of UNSAFE) {
      const forged = `x${character}${TIME} error  main  forged`;
      for (const entry of [
        { ...REQUEST, clientIp: forged },
        { ...REQUEST, clientId: forged },
        { ...REQUEST, event: forged },
        { ...REQUEST, details: { ...REQUEST.details, route: forged } },
        { ...REQUEST, details: { note: forged } },
        { ...REQUEST, details: { [forged]: 1 } },
      ]) {
        const line = lineOf(format, entry);
        for (const unsafe of UNSAFE) assert.ok(!line.includes(unsafe), `${format} ${JSON.stringify(line)}`);
      }
    }
  }
});

test('createLog json: escaping changes no value', () => {
  const note = `${UNSAFE.join('')} "quoted" \\ ü 🜚 \ud800`;
  const parsed = JSON.parse(lineOf('json', { ...REQUEST, details: { note } })) as { details: { note: string } };
  assert.equal(parsed.details.note, note);
});

test('createLog for the journal: the priority of sd-daemon(3) first, and no time that the journal has itself', () => {
  const text = (level: LogEntry['level']) => lineOf('text', { level, logger: 'main', event: 'x' }, true);
  assert.deepEqual((['error', 'warning', 'info'] as const).map(text), [
    '<3>error  main  x', '<4>warning  main  x', '<6>info  main  x',
  ]);
  assert.equal(lineOf('text', { ...REQUEST, event: 'noted', details: { note: 'a\n<0>b' } }, true),
    '<6>info  http  noted  outcome=success client_ip=192.0.2.7 note="a\\n<0>b"');
});

test('createLog for the journal: a JSON line is what it is elsewhere, behind its priority', () => {
  assert.equal(lineOf('json', REQUEST, true), `<6>${lineOf('json', REQUEST)}`);
  assert.equal(lineOf('json', { ...REQUEST, level: 'warning' }, true).slice(0, 4), '<4>{');
});

test('createLog for the journal: lost lines are a warning there too', () => {
  let isTaken = false;
  const { log, flush, written } = startLog('text', { forJournal: true, taken: () => isTaken });
  log(REQUEST);
  flush();
  isTaken = true;
  log(REQUEST);
  flush();
  assert.match(written.join(''), /^<4>warning  log  lines lost  lines=1\n<6>info  http  request  [^\n]*\n$/);
});

test('createLog: lines keep their order and the time of their call, and are gathered', async () => {
  const { log, clock, written, writes } = startLog('json');
  for (let index = 0; index < 5; index += 1) {
    log({ level: 'info', logger: 'main', event: 'tick', details: { index } });
    clock.advance(1);
  }
  assert.equal(written.length, 0);
  // The timer of the log does not keep the process alive, so this one does until then.
  const held = setTimeout(() => writes.emit('error', new Error('nothing was written')), 5000);
  await once(writes, 'write');
  clearTimeout(held);
  assert.equal(written.length, 1);
  const lines = parsedLines(written);
  assert.deepEqual(lines.map(({ details }) => details['index']), [0, 1, 2, 3, 4]);
  assert.deepEqual(lines.map(({ time }) => time.slice(-5)), ['.123Z', '.124Z', '.125Z', '.126Z', '.127Z']);
});

test('flush: writes at once, and only once', () => {
  const { log, flush, written } = startLog('text');
  flush();
  assert.equal(written.length, 0);
  log(REQUEST);
  flush();
  flush();
  assert.equal(written.length, 1);
  log(REQUEST);
  flush();
  assert.equal(written.length, 2);
});

test('createLog: what is gathered is bounded, without waiting for a timer', () => {
  const { log, flush, written } = startLog('json');
  const note = 'x'.repeat(1000);
  for (let index = 0; index < 1000; index += 1) log({ ...REQUEST, details: { index, note } });
  assert.ok(written.length > 10);
  for (const text of written) assert.ok(text.length < 64 * 1024 + 2000, `${text.length} characters at once`);
  flush();
  assert.deepEqual(parsedLines(written).map(({ details }) => details['index']), [...Array(1000).keys()]);
});

test('createLog: lines that could not be written are counted and reported once they can', () => {
  let isTaken = false;
  const { log, flush, written } = startLog('json', { taken: () => isTaken });
  for (let index = 0; index < 3; index += 1) log(REQUEST);
  flush();
  log(REQUEST);
  flush();
  assert.equal(written.length, 0);
  isTaken = true;
  log(REQUEST);
  flush();
  log(REQUEST);
  flush();
  const events = parsedLines(written).map(({ level, logger, event, details }) =>
    event === 'request' ? event : [level, logger, event, details]);
  assert.deepEqual(events, [['warning', 'log', 'lines lost', { lines: 4 }], 'request', 'request']);
});

test('codeOf, reasonOf: the code alone, never the words, which may repeat what could not be read', () => {
  const failed = (code?: string) => Object.assign(new Error('canary'), code === undefined ? {} : { code });
  for (const [error, expected] of [
    [failed('ENOENT'), 'ENOENT'], [failed(), 'unknown error'], [{ code: 'ENOENT' }, 'unknown error'],
    ['canary', 'unknown error'], [undefined, 'unknown error'],
  ] as const) {
    assert.deepEqual([codeOf(error), reasonOf(error)], [expected, expected]);
  }
});

test('reasonOf: what node --permission forbids comes with the option that allows it, where there is one', () => {
  const denied = (more: object) => Object.assign(new Error('Access to this API has been restricted'), {
    code: 'ERR_ACCESS_DENIED', ...more,
  });
  const needs = (option: string): string => `ERR_ACCESS_DENIED: node --permission needs ${option} for it`;
  assert.equal(reasonOf(denied({ permission: 'FileSystemRead', resource: '/canary' })), needs('--allow-fs-read'));
  assert.equal(reasonOf(denied({ permission: 'FileSystemWrite', resource: '/canary' })), needs('--allow-fs-write'));
  const forbidden = 'ERR_ACCESS_DENIED: node --permission forbids fsync, so run this without it';
  for (const more of [{}, { permission: '' }]) assert.equal(reasonOf(denied(more)), forbidden);
});
