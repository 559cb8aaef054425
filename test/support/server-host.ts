// A host with the Debian package, for tests that run lines of the README: a root where the test installs it with dpkg.
// systemd's programs are stand-ins: systemd-run runs the command with the settings and credentials that it would have,
// and the test starts and stops the service where the lines do.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { startService, stopService } from './debian-package.ts';
import { debianRoot, RECORDER, type DebianRoot } from './debian-root.ts';
import { isInstalled } from './programs.ts';

/** systemd.exec(5), LoadCredential= of a folder: each file becomes a credential `pasted_` and its own name. */
const GIVE_CREDENTIALS = `for file in /etc/pasted/credentials/*; do
  if [ -f "$file" ]; then cat "$file" >"/run/credentials/pasted_\${file##*/}"; fi
done`;

const SYSTEMD_RUN = `#!/bin/sh
${GIVE_CREDENTIALS}
while case $1 in -*) ;; *) false ;; esac; do
  case $1 in
    --unit=*) folder=/run/credentials/\${1#*=}; install -d "$folder" ;;
    --property=LoadCredential=tls.*) given=\${1#*=*=}; cat "\${given#*:}" >"$folder/\${given%%:*}" ;;
    --property=Environment=SERVICE_*) for pair in \${1#*=*=}; do export "$pair"; done ;;
  esac
  shift
done
set -a
if [ -f /etc/pasted/pasted.env ]; then . /etc/pasted/pasted.env; fi
export CREDENTIALS_DIRECTORY=/run/credentials STATE_DIRECTORY=/var/lib/pasted NODE_ENV=production
exec "$@"
`;

export interface Host {
  /** The path of a file of the root, seen from outside. */
  path(name: string): string;
  /** Runs the lines, which must succeed, and gives what they write. */
  shell(...lines: readonly string[]): string;
  /** The address of the service. */
  url(): string;
  /** As systemd would: with the credentials as they are now, and the drop-in if there is one. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A root with the programs that the lines call, or undefined where the test is skipped. */
export function furnish(t: TestContext, ...programs: readonly string[]): { root: DebianRoot; host: Host } | undefined {
  const root = debianRoot(t);
  if (root === undefined || !isInstalled(t, 'curl')) return undefined;
  if (!root.borrow(t, 'openssl', 'install', 'mv', ...programs)) return undefined;
  root.standIn('systemd-run', SYSTEMD_RUN);
  root.standIn('journalctl', RECORDER);
  root.standIn('id', '#!/bin/sh\necho 0\n');
  const path = (name: string): string => join(root.folder, name);
  mkdirSync(path('run/credentials'));
  let running: { child: ChildProcess; url: string } | undefined;

  function shell(...lines: readonly string[]): string {
    const { status, output } = root!.run('/bin/sh', '-ec', ['umask 022', ...lines].join('\n'));
    assert.equal(status, 0, `${lines.join('\n')}\n${output}`);
    return output;
  }

  async function stop(): Promise<void> {
    if (running !== undefined) await stopService(running.child);
    running = undefined;
  }

  async function restart(): Promise<void> {
    await stop();
    shell(GIVE_CREDENTIALS);
    const variables = { CREDENTIALS_DIRECTORY: '/run/credentials', ...settingsOf(root!), ...dropIn(root!) };
    running = await startService(root!, variables);
  }

  return { root, host: { path, shell, url: () => running!.url, restart, stop } };
}

/** The settings of EnvironmentFile=, as far as the lines write them. */
function settingsOf({ folder }: DebianRoot): Record<string, string> {
  const file = join(folder, 'etc/pasted/pasted.env');
  const text = statSync(file, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(file, 'utf8');
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));
}

/** The variables of the drop-in for TLS; copies the credentials that it loads. */
function dropIn({ folder }: DebianRoot): Record<string, string> {
  const file = join(folder, 'etc/systemd/system/pasted.service.d/tls.conf');
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return {};
  const text = readFileSync(file, 'utf8');
  for (const [, name = '', source = ''] of text.matchAll(/^LoadCredential=([^:]+):(.*)$/gm)) {
    copyFileSync(join(folder, source), join(folder, 'run/credentials', name));
  }
  const [, variables = ''] = /^Environment=(.*)$/m.exec(text) ?? [];
  const pairs = variables.replaceAll('%d', '/run/credentials').split(' ').map((pair) => pair.split('='));
  return Object.fromEntries(pairs) as Record<string, string>;
}
