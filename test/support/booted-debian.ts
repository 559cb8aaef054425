// A root of Debian as a host that has been started: systemd is its first process, in a container with every right in
// there and no network but its own loopback.

import type { TestContext } from 'node:test';
import { containers } from './containers.ts';
import type { DebianRoot } from './debian-root.ts';
import type { Finished } from './programs.ts';

/** A line of a shell of root's in there, which must succeed unless it says otherwise. */
export type ShellThere = (line: string) => Finished;

/** systemd itself shares mounts where it is in no container, and secrets reach a service through a mount. */
const BOOT = 'mount --make-rshared / && exec /lib/systemd/systemd';

/** As many files as the unit wants. Those that podman would set by itself are more than some hosts give. */
const LIMITS = ['--ulimit', 'nofile=16384:16384', '--ulimit', 'nproc=4096:4096'];

/** Gives up after 20 s, when systemd has given up too, or waits for what never comes. */
const UNTIL_BOOTED = `
left=200
until systemctl is-active --quiet multi-user.target; do
  [ $((left -= 1)) -gt 0 ] || exit
  sleep 0.1
done`;

/** Once it has been started. If it cannot be here, the test is skipped and must return. */
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
