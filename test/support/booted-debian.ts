// A root of Debian that is started as a host: systemd is its first process, in a container with every right inside it
// and no network but its own loopback.

import type { TestContext } from 'node:test';
import { containers } from './containers.ts';
import type { DebianRoot } from './debian-root.ts';
import type { Finished } from './programs.ts';

/** Runs a line in a shell of root's in the host, and gives how it ended. */
export type ShellThere = (line: string) => Finished;

/** systemd shares mounts only outside of containers. This does it, since secrets reach a service through a mount. */
const BOOT = 'mount --make-rshared / && exec /lib/systemd/systemd';

/** As many open files as the unit wants. podman's default limits are higher than some hosts allow. */
const LIMITS = ['--ulimit', 'nofile=16384:16384', '--ulimit', 'nproc=4096:4096'];

/** Gives up after 20 s: by then systemd has given up too, or waits for something that never comes. */
const UNTIL_BOOTED = `
left=200
until systemctl is-active --quiet multi-user.target; do
  [ $((left -= 1)) -gt 0 ] || exit
  sleep 0.1
done`;

/** Starts the host and gives a shell in it. If it cannot be started here, the test is skipped and must return. */
export function bootDebian(t: TestContext, { folder }: DebianRoot): ShellThere | undefined {
  const host = containers(t);
  if (host === undefined) return undefined;
  const words = [
    'run', '--detach', '--replace', '--name', 'host', '--network', 'none', '--privileged', '--systemd', 'always',
    ...LIMITS, '--rootfs', folder,
  ];
  if (host.onSomeRuntime(() => host.podman(...words, '/bin/sh', '-c', BOOT)) === undefined) return undefined;
  const shell: ShellThere = (line) => host.podman('exec', 'host', '/bin/sh', '-c', line);
  if (shell(UNTIL_BOOTED).status === 0) return shell;
  t.skip(`systemd does not start here: ${host.podman('logs', 'host').output.trim().split('\n').at(-1)}`);
  return undefined;
}
