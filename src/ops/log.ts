// How events are written down: JSON lines in production, lines for people elsewhere. Callers make sure that no event
// has a secret in it. Below, standard output and standard error, where a slow reader must not hold the service up.

import { fstatSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, type Log, type LogEntry } from '../core/events.ts';
import type { Clock } from '../core/time.ts';

/** A write costs some 10 us, a line 1 us: at 10 000 requests a second one write serves a hundred lines. */
const GATHER_MS = 10;

/** The bound of what is gathered; a full pipe holds as much on Linux. */
const GATHER_CHARACTERS = 64 * 1024;

/** sd-daemon(3): the journal takes the prefix off and keeps it as the line's PRIORITY. */
const PRIORITIES = { error: '<3>', warning: '<4>', info: '<6>' };

/** Lines come out in the order of the calls, each with the time of its call. */
export function createLog({ format, forJournal = false, write, clock }: {
  readonly format: 'text' | 'json';
  /** Lines begin with their priority and have no time, as the journal keeps it; JSON has the time by contract. */
  readonly forJournal?: boolean;
  /** Takes whole lines; false when it could not take them, and then they are lost. Never waits. */
  readonly write: (text: string) => boolean;
  readonly clock: Clock;
}) {
  let [timeMs, time] = [NaN, ''];
  let gathered = '';
  let lostLines = 0;
  let timer: NodeJS.Timeout | undefined;

  function lineOf(entry: LogEntry): string {
    const nowMs = clock.unixMs();
    // Made once for all lines of a millisecond.
    if (nowMs !== timeMs) [timeMs, time] = [nowMs, new Date(nowMs).toISOString()];
    if (forJournal) return PRIORITIES[entry.level] + (format === 'json' ? jsonLine(entry, time) : textLine(entry));
    return format === 'json' ? jsonLine(entry, time) : `${time} ${textLine(entry)}`;
  }

  function log(entry: LogEntry): void {
    gathered += lineOf(entry);
    if (gathered.length >= GATHER_CHARACTERS) flush();
    else timer ??= setTimeout(flush, GATHER_MS).unref();
  }

  /** Writes what is gathered now: at the exit, or before the process may die. */
  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (gathered === '') return;
    // A reader of the log must know that there is a gap.
    const notice = { level: 'warning', logger: 'log', event: 'lines lost', details: { lines: lostLines } } as const;
    const isTaken = write(lostLines === 0 ? gathered : `${lineOf(notice)}${gathered}`);
    lostLines = isTaken ? 0 : lostLines + gathered.split('\n').length - 1;
    gathered = '';
  }

  return { log: log satisfies Log, flush };
}

/** Every field of the contract on every line, so that a reader can rely on them: null where there is nothing to say. */
function jsonLine(entry: LogEntry, time: string): string {
  const { level, logger, event, outcome = null, clientId = null, clientIp = null, details = {} } = entry;
  const fields = { time, level, logger, event, outcome, client_id: clientId, client_ip: clientIp, details };
  return `${escapeUnsafe(JSON.stringify(fields))}\n`;
}

/** What would make it unclear where a value ends. */
const NEEDS_QUOTES = /[\s"=\\]|^$/;

/** `LEVEL  LOGGER  EVENT  rest`: the rest as `name=value`, except the parts of a request that need no name. */
function textLine({ level, logger, event, outcome, clientId, clientIp, details = {} }: LogEntry): string {
  const words: string[] = [];
  let others = details;
  if (event === 'request') {
    // `GET /{id}/raw 200 1024 B 1.2 ms`: http/servers.ts, which alone logs requests, gives all of them.
    const { method, route, status, bytes, ms, ...rest } = details;
    words.push(`${method} ${route} ${status} ${bytes} B ${Number(ms).toFixed(1)} ms`);
    others = rest;
  }
  for (const [name, value] of Object.entries({ outcome, client_id: clientId, client_ip: clientIp, ...others })) {
    if (value === undefined) continue;
    const text = String(value);
    words.push(`${name}=${NEEDS_QUOTES.test(text) ? JSON.stringify(text) : text}`);
  }
  return `${escapeUnsafe(`${level}  ${logger}  ${event}  ${words.join(' ')}`.trimEnd())}\n`;
}

/** Control characters, and those that end a line or turn its direction: a value could forge lines or move a cursor. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Written as JSON writes them, so that a JSON line stays one with the same meaning. */
function escapeUnsafe(line: string): string {
  return line.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export type Output = Omit<ReturnType<typeof outputTo>, 'drain'>;

/** How much may wait for a slow reader. node queues without a bound what a pipe does not take at once. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** For the service; a command has already waited for its reader by then (operator/arguments.ts). */
const DRAIN_MS = 1000;

/** A reader that goes away or is slow neither ends the process nor fills memory. */
export function outputTo(stream: Writable & { readonly fd?: number }) {
  let isClosed = false;
  let lostBy: string | undefined;
  const lose = (error: Error): void => {
    lostBy ??= codeOf(error);
    // A full disk may have room again; a reader that went away does not come back.
    isClosed ||= codeOf(error) === 'EPIPE';
  };
  // Without a listener a closed pipe would be an uncaught error, whose report is an error again.
  stream.on('error', lose);
  const { fd } = stream;
  const writeToFile = fd !== undefined && fstatSync(fd).isFile() ? fileWriter(fd, lose) : undefined;
  return {
    /** False when it could not take the bytes, which are then lost: nobody reads, or not fast enough. Never waits. */
    write: (written: string | Uint8Array): boolean => {
      if (isClosed || stream.writableLength > MAX_WAITING_BYTES) return false;
      if (writeToFile !== undefined) return writeToFile(Buffer.from(written as string));
      stream.write(written);
      return true;
    },
    /** Waits for a slow reader, however long. Resolves with false when not all was taken, now or before. */
    writeWhole: (written: Uint8Array) => new Promise<boolean>((resolve) => {
      // After an error, a stream of Node's no longer says what becomes of what is written to it.
      if (lostBy !== undefined) return resolve(false);
      if (writeToFile !== undefined) return resolve(writeToFile(written));
      stream.write(written, (error) => {
        if (error) lose(error);
        resolve(!error);
      });
    }),
    /** Such as ENOSPC; undefined while nothing is lost, and when the reader went away, which is the reader's choice. */
    whyLost: () => (isClosed ? undefined : lostBy),
    /** Waits, but not for long. */
    drain: async () => {
      if (isClosed || stream.writableLength === 0) return;
      await Promise.race([new Promise((resolve) => stream.write('', resolve)), delay(DRAIN_MS)]);
    },
  };
}

/** Says whether a disk that gets full took all, which node's stream does not check. After a cut a new line begins. */
function fileWriter(descriptor: number, lose: (error: Error) => void) {
  let isCut = false;
  return (bytes: Uint8Array): boolean => {
    const all = isCut ? Buffer.concat([Buffer.from('\n'), bytes]) : bytes;
    let taken = 0;
    try {
      while (taken < all.length) taken += writeSync(descriptor, all, taken);
    } catch (error) {
      lose(error as Error);
    }
    isCut = taken < all.length && (isCut || taken > 0);
    return taken === all.length;
  };
}
