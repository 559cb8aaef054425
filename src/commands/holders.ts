// Which process has a file or a port, as far as /proc shows it: to root every process, to others their own. Where there
// is no /proc nobody is found.

import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';

/** Who is refused wants an answer soon, also on a host with thousands of connections. */
const MOST_DESCRIPTORS = 50_000;

/** Of a command line: the program, its script and what it does. What follows may be anything, secrets included. */
const SHOWN_WORDS = 3;
const SHOWN_CHARACTERS = 120;

/** TCP_LISTEN of proc(5), /proc/net/tcp. */
const LISTENING = '0A';

/** `process 123 (node dist/main.js)`; undefined when it is not to be seen. Never this process. */
export function holderOfFile(path: string): string | undefined {
  const real = readable(() => realpathSync(path));
  return real === undefined ? undefined : findHolder((target) => target === real);
}

/** The same of whoever listens on this TCP port, on any address. */
export function holderOfPort(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['tcp', 'tcp6'].flatMap((table) => (
    readable(() => readFileSync(`/proc/net/${table}`, 'latin1').split('\n')) ?? []
  ));
  const sockets = lines.map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(suffix) && state === LISTENING)
    .map((fields) => `socket:[${fields[9]}]`);
  return sockets.length === 0 ? undefined : findHolder((target) => sockets.includes(target));
}

/** By what its descriptors are links to. */
function findHolder(isIt: (target: string) => boolean): string | undefined {
  const own = readable(() => readlinkSync('/proc/self'));
  let left = MOST_DESCRIPTORS;
  for (const pid of readable(() => readdirSync('/proc')) ?? []) {
    if (!/^\d+$/.test(pid) || pid === own) continue;
    for (const descriptor of readable(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      left -= 1;
      if (left < 0) return undefined;
      const target = readable(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
      if (target !== undefined && isIt(target)) return `process ${pid} (${commandOf(pid)})`;
    }
  }
  return undefined;
}

function commandOf(pid: string): string {
  const words = readable(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
  const shown = words.filter((word) => word !== '' && !word.startsWith('-')).slice(0, SHOWN_WORDS).join(' ');
  return shown.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, SHOWN_CHARACTERS);
}

/** What is not there any more, or is somebody else's, is passed over. */
function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
