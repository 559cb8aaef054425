// The README's lines for operators, run as printed by a shell in a root where dpkg has installed the package, as
// support/server-host.ts has it. curl runs outside, with the port that the service has here.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import test from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { thePackages } from '../support/debian-package.ts';
import { run } from '../support/programs.ts';
import { blocksUnder } from '../support/readme.ts';
import { furnish, type Host } from '../support/server-host.ts';

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

/** The beginnings of the lines of `pastedctl check` that are not ok. */
function doubtsIn(checked: string): string[] {
  return checked.split('\n').filter((line) => !/^(?:ok .*)?$/.test(line)).map((line) => line.slice(0, 42));
}

/** A line of curl, run outside with the service's address in the place of the printed one. */
function curl(line: string, host: Host, ...more: readonly string[]): string {
  const [, address = '', path = ''] = /^curl (https?:\/\/[^/]+)(\/\S*)$/.exec(line) ?? assert.fail(line);
  assert.equal(new URL(host.url()).protocol, new URL(address).protocol);
  const { status, stdout, output } = run('curl', ['-sS', ...more, `${host.url()}${path}`], '/');
  assert.equal(status, 0, output);
  return stdout;
}

test('README: a server in five minutes, a proxy, and looking after it, as printed', async (t) => {
  const furnished = furnish(t, 'mkdir');
  if (furnished === undefined) return;
  const { root, host } = furnished;
  const [install = [], tls = []] = blocksUnder('On a server in five minutes');

  await t.test('install, a passphrase, the admin', async () => {
    const [apt, passphrase = '', restart = '', admin = '', check = '', ask = '', ...more] = install;
    assert.deepEqual(more, []);
    const { pasted, nodejs } = thePackages();
    // dpkg installs the packages here; interop/bare-debian.test.ts has apt do it.
    assert.equal(apt, 'apt install ./pasted_*.deb ./pasted-runtime_*.deb');
    assert.equal(root.dpkg('-i', nodejs, pasted).status, 0);
    root.calls();
    host.shell(passphrase, restart);
    assert.deepEqual(root.calls(), ['systemctl restart pasted.service']);
    assert.equal(modeOf(host.path('etc/pasted/credentials/SERVICE_PKI_CA_PASSWORD')), 0o600);
    await host.restart();
    host.shell(admin);
    assert.equal(modeOf(host.path('admin.p12')), 0o600);
    const checked = host.shell(check);
    assert.match(checked, /^ok +certificate authority/m);
    assert.deepEqual(doubtsIn(checked), ['warn settings: SERVICE_PROXY_SECRET is not']);
    assert.match(curl(ask, host), /"healthy"/);
  });

  await t.test('TLS by the service itself', async () => {
    const live = '/etc/letsencrypt/live/paste.example';
    mkdirSync(host.path(live), { recursive: true });
    host.shell(`cd ${live}`, 'pasted tls self-signed --host paste.example,127.0.0.1', 'mv server.crt fullchain.pem',
      'mv server.key privkey.pem');
    host.shell(...tls);
    assert.deepEqual(root.calls(), ['systemctl daemon-reload', 'systemctl restart pasted.socket pasted.service']);
    const socket = readFileSync(host.path('etc/systemd/system/pasted.socket.d/port.conf'), 'utf8');
    assert.equal(socket, '[Socket]\nListenStream=\nListenStream=[::]:443\n');
    await host.restart();
    const trust = ['--cacert', host.path(`${live}/fullchain.pem`)];
    assert.match(curl('curl https://paste.example/health', host, ...trust), /"healthy"/);
    assert.deepEqual(doubtsIn(host.shell('pastedctl check')), []);
    assert.match(host.shell('pastedctl check'), /^ok TLS certificate: [^\n]+$/m);
    host.shell(`cd ${live}`, 'mv fullchain.pem away.pem');
    assert.match(host.shell('pastedctl check || true'), /^fail TLS certificate: [^\n]+ENOENT/m);
    host.shell('pastedctl stats', `cd ${live}`, 'mv away.pem fullchain.pem');
    root.calls();
    const admin = ['--cert-type', 'P12', '--cert', `${host.path('admin.p12')}:`];
    assert.match(curl('curl https://paste.example/audit', host, ...trust, ...admin), /"cert_issued"/);
  });

  await t.test('the files of a proxy', async () => {
    const [[secret = '', restart = '', ...files] = [], ...others] = blocksUnder('Behind a proxy');
    assert.deepEqual(others, []);
    host.shell(secret, restart, ...files);
    assert.deepEqual(root.calls(), ['systemctl restart pasted.service']);
    assert.equal(modeOf(host.path('etc/pasted/credentials/SERVICE_PROXY_SECRET')), 0o600);
    const verified = run('openssl', ['crl', '-in', host.path('etc/pasted/ca.crl.pem'), '-noout', '-CAfile',
      host.path('etc/pasted/ca.crt')], '/');
    assert.match(verified.output, /verify OK/);
    await host.restart();
  });

  await t.test('looking after it, and a restore', async () => {
    const [watch = [], restore = [], ...others] = blocksUnder('Looking after it');
    assert.deepEqual(others, []);
    const trust = ['--cacert', host.path('etc/letsencrypt/live/paste.example/fullchain.pem')];
    const stored = run('curl', ['-sS', ...trust, '--data-binary', 'kept', `${host.url()}/`], '/');
    const { raw } = JSON.parse(stored.stdout) as { raw: string };
    const watched = host.shell(...watch);
    assert.match(watched, /^ok integrity: no damage /m);
    assert.match(watched, /^pastes +1$/m);
    assert.deepEqual(root.calls(), ['journalctl -u pasted.service -p warning']);
    assert.equal(modeOf(host.path('pasted-backup.db')), 0o600);
    await host.stop();
    assert.match(host.shell(...restore), /^Restored .* from standard input: 1 paste /m);
    assert.deepEqual(root.calls(), [
      'systemctl stop pasted.socket pasted.service', 'systemctl start pasted.socket pasted.service',
    ]);
    await host.restart();
    assert.equal(run('curl', ['-sS', ...trust, `${host.url()}${raw}`], '/').stdout, 'kept');
    await host.stop();
    assert.match(host.shell('pasted version'), new RegExp(VERSION.replaceAll('.', '\\.')));
  });
});

test('tarball: is installed by the lines at the head of either unit', (t) => {
  const furnished = furnish(t, 'cp', 'mkdir');
  if (furnished === undefined) return;
  const { root, host } = furnished;
  const unpacked = run('tar', ['-xzf', thePackages().tarball, '-C', root.folder], '/');
  assert.equal(unpacked.status, 0, unpacked.output);
  // Every host with systemd has the first of these folders, and systemd makes the second.
  mkdirSync(host.path('etc/systemd/system'), { recursive: true });
  mkdirSync(host.path('var/lib/pasted'), { recursive: true, mode: 0o700 });
  for (const units of [['pasted.socket', 'pasted.service'], ['pasted-tcp.service']]) {
    const unit = readFileSync(host.path(`pasted-${VERSION}/deploy/systemd/${units.at(-1)}`), 'utf8');
    const lines = [...unit.matchAll(/^# {3}(\S.*)$/gm)].map(([, line = '']) => line);
    assert.equal(lines.length, 5);
    host.shell('umask 077', `cd pasted-${VERSION}`, ...lines);
    assert.deepEqual([modeOf(host.path('usr/lib/pasted')), modeOf(host.path('usr/lib/pasted/main.js')) & 0o044], [0o755, 0o044]);
    assert.deepEqual(root.calls(), ['systemctl daemon-reload', `systemctl enable --now ${units.join(' ')}`]);
    for (const name of units) assert.ok(existsSync(host.path(`etc/systemd/system/${name}`)), name);
  }
  assert.equal(modeOf(host.path('etc/pasted/credentials')), 0o700);
  host.shell('echo passphrase > /etc/pasted/credentials/SERVICE_PKI_CA_PASSWORD');
  host.shell('/usr/local/sbin/pastedctl admin create --out - > admin.p12');
  assert.match(host.shell('/usr/local/sbin/pastedctl check'), /^ok certificate authority: /m);
});
