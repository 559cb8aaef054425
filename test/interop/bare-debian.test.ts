// The packages pasted and pasted-runtime on Debian 12 and 13 with nothing else: what apt says, installs and removes,
// the service on the Node that it brings, and the units under a systemd that runs. What dpkg does with the package
// pasted by itself: debian-package.test.ts; what systemd's programs say of the units: systemd.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { bareDebian } from '../support/bare-debian.ts';
import { bootDebian } from '../support/booted-debian.ts';
import { startService, stopService } from '../support/debian-package.ts';
import type { DebianRoot } from '../support/debian-root.ts';
import { deployed, findLitestream } from '../support/litestream.ts';
import { isInstalled, run, temporaryFolder, type Finished } from '../support/programs.ts';
import { blocksUnder } from '../support/readme.ts';
import { copySource, makeRelease, tryRelease } from '../support/release.ts';
import { ROOT } from '../support/source.ts';

const RUNTIME = '/usr/lib/pasted-runtime/bin/node';

let made: string | undefined;
// At the top level, because inside a test `after` would run at the end of that test.
after(() => {
  if (made !== undefined) rmSync(made, { recursive: true });
});

/** The folder of a release with the package of Node, made once; undefined where the test is skipped. */
async function theRelease(t: TestContext): Promise<string | undefined> {
  if (!isInstalled(t, 'dpkg-deb')) return undefined;
  if (made === undefined) {
    // Fetches the pinned Node here if it is not kept yet: a release that a test makes may not take as long.
    await (await runtimes()).releasedRuntime();
    made = mkdtempSync(join(tmpdir(), 'pasted-packages-'));
    makeRelease(made, { words: ['--runtime'] });
  }
  return made;
}

/** The name of the package of Node among what was made. */
function runtimeIn(folder: string): string {
  return readdirSync(folder).find((name) => name.startsWith('pasted-runtime_')) ?? assert.fail(folder);
}

interface Runtimes {
  readonly pinnedVersions: readonly string[];
  readonly releasedRuntime: () => Promise<{
    version: string; platform: string; license: Buffer; sha256: string; sha512: string;
  }>;
}

async function runtimes(): Promise<Runtimes> {
  const module: string = join(ROOT, 'scripts', 'runtime.mjs');
  return await import(module) as Runtimes;
}

test('pasted-runtime: is made of the same bytes again', async (t) => {
  const release = await theRelease(t);
  if (release === undefined) return;
  const again = temporaryFolder(t);
  makeRelease(again, { words: ['--runtime'], umask: '077', environment: { TZ: 'Pacific/Kiritimati', HOME: again } });
  assert.match(readFileSync(join(again, 'SHA256SUMS'), 'utf8'), / {2}pasted-runtime_/);
  assert.equal(readFileSync(join(again, 'SHA256SUMS'), 'utf8'), readFileSync(join(release, 'SHA256SUMS'), 'utf8'));
});

test('pasted-runtime: a program that is not as it was released is not handed out', async (t) => {
  const folder = temporaryFolder(t);
  const source = join(folder, 'source');
  copySource(source);
  const [version] = (await runtimes()).pinnedVersions;
  const kept = join(source, '.runtime', `node-${version}-${process.platform}-${process.arch}`, 'bin', 'node');
  // Something else is now in the place of what was verified when it was fetched.
  cpSync('/bin/true', kept);
  const { status, stderr } = tryRelease(join(folder, 'out'), { source, words: ['--runtime'] });
  assert.deepEqual([status, stderr], [
    1, `pasted: there is no Node to hand out: ${kept} is not as it was released: remove its folder\n`,
  ]);
  assert.deepEqual(readdirSync(join(folder, 'out')), []);
});

test('pasted-runtime: carries the pinned build, its terms and digests, and nothing for others\' PATH', async (t) => {
  const release = await theRelease(t);
  if (release === undefined) return;
  const { version, platform, license, sha256, sha512 } = await (await runtimes()).releasedRuntime();
  const folder = temporaryFolder(t);
  const deb = join(release, runtimeIn(release));
  const field = (name: string): string => run('dpkg-deb', ['-f', deb, name], folder).stdout.trimEnd();
  assert.deepEqual(['Package', 'Version'].map(field), ['pasted-runtime', `${version}+pasted${VERSION}`]);
  assert.equal(field('Architecture'), run('dpkg', ['--print-architecture'], folder).stdout.trimEnd());
  assert.equal(run('dpkg-deb', ['-R', deb, join(folder, 'tree')], folder).status, 0);
  const path = (name: string): string => join(folder, 'tree', name);
  const files = readdirSync(path('.'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((entry) => relative(path('.'), join(entry.parentPath, entry.name))).sort();
  const doc = 'usr/share/doc/pasted-runtime';
  assert.deepEqual(names, [
    'DEBIAN/control', 'DEBIAN/md5sums', 'DEBIAN/postinst', 'usr/lib/pasted-runtime/bin/node',
    `${doc}/README`, `${doc}/changelog.gz`, `${doc}/copyright`, 'usr/share/lintian/overrides/pasted-runtime',
  ]);
  const sums = run('md5sum', ['--check', '--strict', '--quiet', 'DEBIAN/md5sums'], path('.'));
  assert.deepEqual([sums.status, sums.output], [0, '']);
  assert.equal(createHash('sha256').update(readFileSync(path(RUNTIME))).digest('hex'), sha256);
  const readme = readFileSync(path(`${doc}/README`), 'utf8');
  assert.deepEqual(readme.match(/@[A-Z\d]+@/g), null, 'every name is replaced');
  for (const part of [sha256, Buffer.from(sha512, 'base64').toString('hex'), `node-v${version}-${platform}.tar.gz`]) {
    assert.ok(readme.includes(part), part);
  }
  assert.ok(readFileSync(path(`${doc}/copyright`), 'utf8').endsWith(`\n\n${license.toString()}`));
});

/** systemd too, so that it can be started, and what the package recommends for it. */
const BOOTABLE = { suite: 'bookworm', more: ['systemd-sysv', 'dbus', 'procps'] };

/** A root with the packages in /srv, where the shell's lines run. */
async function bareRoot(t: TestContext, { suite, more }: { suite: string; more: readonly string[] }) {
  const release = await theRelease(t);
  const root = release === undefined ? undefined : bareDebian(t, suite, ...more);
  if (release === undefined || root === undefined) return undefined;
  const packages = readdirSync(release).filter((file) => file.endsWith('.deb'));
  for (const file of packages) cpSync(join(release, file), join(root.folder, 'srv', file));
  const shell = (line: string): Finished => {
    return root.run('/bin/sh', '-c', `cd /srv; export DEBIAN_FRONTEND=noninteractive; ${line}`);
  };
  return { root, shell };
}

for (const [name, system] of [['Debian 12', BOOTABLE], ['Debian 13', { suite: 'trixie', more: [] }]] as const) {
  test(`${name} with nothing else: apt installs both packages, and the second has the service's Node`, async (t) => {
    const bare = await bareRoot(t, system);
    if (bare === undefined) return;
    const { root, shell } = bare;
    const alone = shell(`apt-get install -y ./pasted_${VERSION}_all.deb`);
    assert.equal(alone.status, 100);
    assert.match(alone.output, /nodejs \(>= 24\)[^]*pasted-runtime \(>= 24\)/);
    const [[line = ''] = []] = blocksUnder('On a server in five minutes');
    assert.match(line, /^apt install .*pasted-runtime/);
    const installed = shell(line.replace('install', 'install -y'));
    assert.equal(installed.status, 0, installed.output);
    assert.match(installed.output, /Setting up pasted-runtime [^]*Setting up pasted /);
    assert.equal(shell('dpkg --verify pasted pasted-runtime').output, '');
    assert.equal(shell('pasted version').output, `pasted ${VERSION}\n`);
    assert.notEqual(shell('command -v node').status, 0, 'it is for nothing else');

    await serves(root, RUNTIME);
    // An operator with another Node may remove the package again.
    cpSync(join(root.folder, RUNTIME), join(root.folder, 'usr/bin/node'));
    assert.equal(shell('dpkg --remove --force-depends pasted-runtime').status, 0);
    await serves(root, '/usr/bin/node');
    assert.equal(shell('pasted version').output, `pasted ${VERSION}\n`);
    assert.equal(shell('apt-get purge -y pasted').status, 0);
    assert.deepEqual(readdirSync(join(root.folder, 'usr/lib')).filter((file) => file.startsWith('pasted')), []);
  });
}

test('Debian 12 after a start: systemd runs the service as its unit says, on the Node that there is', async (t) => {
  const bare = await bareRoot(t, BOOTABLE);
  if (bare === undefined) return;
  assert.equal(bare.shell('apt-get install -y ./pasted_*.deb ./pasted-runtime_*.deb').status, 0);
  const shell = bootDebian(t, bare.root);
  if (shell === undefined) return;
  const done = (line: string): string => {
    const { status, stdout, output } = shell(line);
    assert.equal(status, 0, `${line}: ${output}`);
    return stdout;
  };
  const node = (): string => done('readlink /proc/$(systemctl show -P MainPID pasted.service)/exe').trim();
  const asked = (script: string): string => done(`${RUNTIME} -e '${script}'`).trim();
  const health = 'fetch("http://127.0.0.1:8080/health").then((reply) => console.log(reply.status))';

  await t.test('it is enabled, started with the host, and sandboxed', () => {
    assert.equal(done('systemctl is-active pasted.socket pasted.service'), 'active\nactive\n');
    assert.equal(asked(health), '200');
    assert.equal(node(), RUNTIME);
    const status = done('cat /proc/$(systemctl show -P MainPID pasted.service)/status');
    assert.match(status, /^Uid:\t(?!0\t)/m);
    for (const line of [/^CapBnd:\t0{16}$/m, /^NoNewPrivs:\t1$/m, /^Seccomp:\t2$/m]) assert.match(status, line);
    assert.equal(done('stat -c %a /var/lib/private/pasted/pasted.db'), '600\n');
  });

  await t.test('a secret is read after a restart, which loses no request, and pastedctl is the service\'s user', () => {
    done('umask 077; echo a passphrase >/etc/pasted/credentials/SERVICE_PKI_CA_PASSWORD');
    assert.equal(done(`systemctl restart pasted.service & ${RUNTIME} -e '${health}'; wait`), '200\n');
    assert.match(done('umask 077; pastedctl admin create --out - | wc -c'), /^\d{4}\n$/);
    assert.match(done('pastedctl check'), /^ok authority key: /m);
    assert.match(done('pastedctl stats'), /^certificates +1$/m);
    done('systemctl reload pasted.service');
  });

  await t.test('without the package it runs on the host\'s Node, and with it on that again', () => {
    done(`cp ${RUNTIME} /usr/bin/node; dpkg --remove --force-depends pasted-runtime; systemctl restart pasted.service`);
    assert.equal(node(), '/usr/bin/node');
    assert.match(done('pastedctl stats'), /^certificates +1$/m);
    done('dpkg -i /srv/pasted-runtime_*.deb; systemctl restart pasted.service');
    assert.equal(node(), RUNTIME);
  });

  await t.test('killed, it is there again for the next request', () => {
    done('kill -9 $(systemctl show -P MainPID pasted.service)');
    assert.equal(asked(health), '200');
    assert.equal(done('systemctl show -P NRestarts pasted.service'), '1\n');
  });

  await t.test('README: its lines for TLS; the drop-in for metrics; and the unit with a port of its own', () => {
    const live = '/etc/letsencrypt/live/paste.example';
    done(`mkdir -p ${live} && cd ${live} && pasted tls self-signed --host 127.0.0.1`);
    done(`cd ${live} && mv server.crt fullchain.pem && mv server.key privkey.pem`);
    const [, tls = []] = blocksUnder('On a server in five minutes');
    done(['set -e', ...tls].join('\n'));
    const secure = health.replace('http://127.0.0.1:8080', 'https://127.0.0.1');
    assert.equal(done(`NODE_EXTRA_CA_CERTS=${live}/fullchain.pem ${RUNTIME} -e '${secure}'`), '200\n');
    assert.match(done('pastedctl check'), /^ok TLS certificate: /m);
    assert.doesNotMatch(done('pastedctl check'), /SERVICE_PROXY_SECRET/);
    done(`mv ${live}/privkey.pem ${live}/away.pem`);
    assert.match(done('pastedctl stats'), /^certificates +1$/m);
    assert.match(done('pastedctl check || true'), /^fail TLS certificate: /m);

    const dropIns = '/etc/systemd/system/pasted.service.d';
    done(`rm -r ${dropIns} /etc/systemd/system/pasted.socket.d`);
    done('systemctl daemon-reload; systemctl restart pasted.socket');
    done(`install -D -m 644 /usr/share/pasted/examples/systemd/metrics.conf ${dropIns}/metrics.conf`);
    done('systemctl daemon-reload; systemctl restart pasted.service');
    assert.equal(asked(health), '200');
    assert.equal(asked(health.replace('8080/health', '9464/metrics')), '200');

    done('systemctl disable --now pasted.socket pasted.service; systemctl start pasted-tcp.service');
    done(`until ${RUNTIME} -e '${health}' 2>/dev/null; do sleep 0.1; done`);
    assert.match(done('pastedctl stats'), /^certificates +1$/m);
    done('systemctl stop pasted-tcp.service; systemctl enable --now pasted.socket pasted.service');
  });

  await t.test('Litestream, by the lines of its README: a reload reaches the service, and an error is a warning', (t) => {
    const litestream = findLitestream();
    if (litestream === undefined) return t.skip('litestream is not installed');
    cpSync(litestream, join(bare.root.folder, 'usr/bin/litestream'));
    const [[, ...lines] = []] = blocksUnder('Set up', {}, deployed('README.md'));
    done(['set -e', ...lines.slice(0, -1)].join('\n'));
    // Under timeout(1), whatever does not come fails the test: before run() would give up on podman itself.
    const soon = (line: string): string => done(`timeout 25 sh -c 'until ${line}; do sleep 0.2; done'`);
    soon('pastedctl check | grep "^ok replica: "');
    done('systemctl reload pasted.service');
    const logged = 'journalctl -u pasted.service --output=cat';
    soon(`${logged} | grep "\\"event\\":\\"reloaded\\""`);
    const replica = '/var/lib/private/pasted-replica/pasted';
    // In an empty place Litestream begins anew.
    done(`systemctl stop pasted.service && mv ${replica} ${replica}.before && systemctl start pasted.service`);
    soon(`test -e ${replica}/ltx/0/0000000000000001-0000000000000001.ltx`);
    // If Litestream makes the folder again just then, once more.
    done(`until mv ${replica} $(mktemp -d ${replica}.XXXX) && true >${replica}; do :; done`);
    done('pastedctl invite create');
    soon(`${logged} --priority=warning | grep "\\"msg\\":.*${replica}"`);
    done(`rm ${replica} && rm /etc/systemd/system/pasted.service.d/replica.conf`);
    done('systemctl daemon-reload; systemctl restart pasted.service');
    assert.equal(asked(health), '200');
  });

  await t.test('an upgrade of the package restarts what runs on it', () => {
    const before = done('systemctl show -P MainPID pasted.service');
    done('dpkg -i /srv/pasted-runtime_*.deb');
    assert.notEqual(done('systemctl show -P MainPID pasted.service'), before);
    assert.equal(node(), RUNTIME);
    assert.equal(asked(health), '200');
  });
});

/** The service, started as the unit says, runs on that Node and keeps a paste. */
async function serves(root: DebianRoot, node: string): Promise<void> {
  const { child, url } = await startService(root);
  assert.equal(readlinkSync(`/proc/${child.pid}/exe`), join(root.folder, node));
  const stored = await fetch(url, { method: 'POST', body: `stored on ${node}` });
  assert.equal(stored.status, 201);
  const { raw } = await stored.json() as { raw: string };
  assert.equal(await (await fetch(`${url}${raw}`)).text(), `stored on ${node}`);
  await stopService(child);
}
