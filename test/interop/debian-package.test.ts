// The Debian package in the hands of dpkg: installed, started as its unit says, upgraded, removed, purged. systemd
// itself takes no part: its programs are stand-ins, and the test does what the unit asks of it.

import assert from 'node:assert/strict';
import {
  appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { startService, stopService, thePackages } from '../support/debian-package.ts';
import { debianRoot } from '../support/debian-root.ts';
import type { Finished } from '../support/programs.ts';

test('Debian package: installs, serves, upgrades, is removed and purged', async (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  const inRoot = (path: string): string => join(root.folder, path);
  const kept = ['etc/pasted/credentials/SERVICE_PKI_CA_PASSWORD', 'var/lib/pasted/pasted.db'];
  let paste = '';

  await t.test('dpkg -i: waits for Node, then configures, enables and starts the service', () => {
    const early = root.dpkg('-i', packages.pasted);
    assert.equal(early.status, 1);
    assert.match(early.output, /pasted depends on nodejs \(>= 24\)/);
    assert.deepEqual(root.calls(), []);
    assert.equal(root.dpkg('-i', packages.nodejs).status, 0);
    const { status, output } = root.dpkg('--configure', 'pasted');
    assert.deepEqual({ status, output }, { status: 0, output: `Setting up pasted (${VERSION}) ...\n` });
    assert.deepEqual(root.calls(), [
      'deb-systemd-helper enable pasted.socket',
      'deb-systemd-helper enable pasted.service',
      'systemctl daemon-reload',
      'deb-systemd-invoke start pasted.socket pasted.service',
    ]);
  });

  await t.test('dpkg --verify: every file is as it was packed', () => {
    assert.deepEqual(root.dpkg('--verify', 'pasted'), { status: 0, stdout: '', output: '' });
    appendFileSync(inRoot('usr/lib/pasted/main.js'), '\n');
    assert.match(root.dpkg('--verify', 'pasted').stdout, /^\?\?5\?+ +\/usr\/lib\/pasted\/main\.js$/m);
    const check = (): Finished => root.run('/usr/bin/pasted', 'check', '--files', '/usr/share/doc/pasted/sbom.cdx.json');
    assert.match(check().output, /^fail dist\/main\.js: changed\nfail files: 1 in \/usr\/lib\/pasted are not those of /);
    assert.equal(root.dpkg('-i', packages.pasted).status, 0);
    assert.equal(root.dpkg('--verify', 'pasted').output, '');
    assert.match(check().output, new RegExp(`^ok files: \\d+ in /usr/lib/pasted are those of pasted ${VERSION}\n$`));
  });

  await t.test('/usr/bin/pasted: runs the commands', () => {
    assert.equal(root.run('/usr/bin/pasted', 'version').output, `pasted ${VERSION}\n`);
    const { status, output } = root.run('/usr/bin/pasted', 'no such command');
    assert.equal(status, 2);
    assert.match(output, /"no such command"/);
  });

  await t.test('/usr/bin/pastec: is the client of this version', () => {
    assert.equal(root.run('/usr/bin/pastec', '--version').output, `pastec ${VERSION}\n`);
  });

  await t.test('the unit\'s own command: serves, and ends with 0', async () => {
    const { child, url } = await startService(root);
    assert.equal((await fetch(`${url}/health`)).status, 200);
    const stored = await fetch(url, { method: 'POST', body: 'kept over upgrades' });
    assert.equal(stored.status, 201);
    paste = (await stored.json() as { raw: string }).raw;
    await stopService(child);
    assert.ok(existsSync(inRoot('var/lib/pasted/pasted.db')));
  });

  await t.test('dpkg -i of a newer version: keeps settings and pastes, and restarts what runs', async () => {
    appendFileSync(inRoot('etc/pasted/pasted.env'), 'SERVICE_MIN_SIZE=1\n');
    writeFileSync(inRoot(kept[0]!), 'a passphrase');
    root.calls();
    const { status, output } = root.dpkg('-i', packages.newer);
    assert.equal(status, 0, output);
    assert.match(readFileSync(inRoot('etc/pasted/pasted.env'), 'utf8'), /^SERVICE_MIN_SIZE=1$/m);
    assert.deepEqual(root.calls().slice(2), [
      'systemctl daemon-reload',
      'deb-systemd-invoke try-restart pasted.service pasted-tcp.service',
      'deb-systemd-invoke start pasted.socket pasted.service',
    ]);
    const { child, url } = await startService(root);
    assert.equal(await (await fetch(`${url}${paste}`)).text(), 'kept over upgrades');
    await stopService(child);
  });

  await t.test('dpkg -i: where pasted-tcp.service runs, it restarts that and starts nothing that would end it', () => {
    writeFileSync(inRoot('pasted-tcp.service'), '');
    assert.equal(root.dpkg('-i', packages.newer).status, 0);
    assert.deepEqual(root.calls().slice(2), [
      'systemctl daemon-reload',
      'deb-systemd-invoke try-restart pasted.service pasted-tcp.service',
    ]);
    rmSync(inRoot('pasted-tcp.service'));
  });

  await t.test('dpkg -i: starts pasted-tcp.service, which a removal has stopped, where that is enabled in their place', () => {
    for (const name of ['disabled', 'pasted-tcp.service.enabled']) writeFileSync(inRoot(name), '');
    assert.equal(root.dpkg('-i', packages.newer).status, 0);
    assert.equal(root.calls().at(-1), 'deb-systemd-invoke start pasted-tcp.service');
    for (const name of ['disabled', 'pasted-tcp.service.enabled']) rmSync(inRoot(name));
  });

  await t.test('dpkg -i: does not enable what the administrator disabled', () => {
    writeFileSync(inRoot('disabled'), '');
    assert.equal(root.dpkg('-i', packages.newer).status, 0);
    assert.deepEqual(root.calls(), [
      'deb-systemd-helper update-state pasted.socket',
      'deb-systemd-helper update-state pasted.service',
      'systemctl daemon-reload',
      'deb-systemd-invoke try-restart pasted.service pasted-tcp.service',
    ]);
    rmSync(inRoot('disabled'));
  });

  await t.test('dpkg -r: stops everything, and leaves settings, secrets and pastes', () => {
    const { status, output } = root.dpkg('-r', 'pasted');
    assert.equal(status, 0, output);
    assert.deepEqual(root.calls(), [
      'deb-systemd-invoke stop pasted.socket pasted.service pasted-tcp.service', 'systemctl daemon-reload',
    ]);
    for (const path of [...kept, 'etc/pasted/pasted.env']) assert.ok(existsSync(inRoot(path)), path);
    for (const path of ['usr/bin/pasted', 'usr/lib/pasted', 'usr/lib/systemd', 'usr/share']) {
      assert.ok(!existsSync(inRoot(path)), path);
    }
  });

  await t.test('dpkg -P: forgets settings, and keeps what people entrusted to it, saying where', () => {
    mkdirSync(inRoot('var/lib/private/pasted-replica/pasted'), { recursive: true });
    const { status, output } = root.dpkg('-P', 'pasted');
    assert.equal(status, 0, output);
    assert.deepEqual(root.calls(), ['deb-systemd-helper purge pasted.socket pasted.service']);
    assert.deepEqual(readdirSync(inRoot('etc/pasted')), ['credentials']);
    for (const path of kept) assert.ok(existsSync(inRoot(path)), path);
    for (const folder of ['/var/lib/pasted', '/var/lib/private/pasted-replica', '/etc/pasted/credentials']) {
      assert.match(output, new RegExp(`^pasted: kept ${folder}; `, 'm'));
    }
    const listed = root.dpkg('-l', 'pasted').output;
    assert.match(listed, /no packages found|^un /m);
  });
});

/** Stands in for systemd-run: keeps its words, interrupts its caller, and ends as the command would. */
const SYSTEMD_RUN = `#!/bin/sh
printf '%s\\0' "$@" >/words
kill -INT $PPID
echo 'what the command says'
exit 75
`;

test('pastedctl: has systemd run the command as the service would', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  assert.equal(root.dpkg('-i', packages.nodejs, packages.pasted).status, 0);
  const control = (...words: string[]): Finished => root.run('/usr/sbin/pastedctl', ...words);
  root.standIn('systemd-run', SYSTEMD_RUN);
  root.standIn('id', '#!/bin/sh\necho 0\n');
  root.calls();

  const { status, output } = control('pki', 'revoke', 'a $HOME  b');
  assert.deepEqual({ status, output }, { status: 75, output: 'what the command says\n' });
  const words = readFileSync(join(root.folder, 'words'), 'utf8').split('\0').slice(0, -1);
  // systemd.service(5): two dollar signs are one.
  assert.deepEqual(words.slice(-4), ['/usr/lib/pasted/main.js', 'pki', 'revoke', 'a $$HOME  b']);
  assert.ok(words.includes('--description=pasted pki'));
  const unit = words.find((word) => word.startsWith('--unit='))?.slice('--unit='.length);
  assert.deepEqual(root.calls(), [`systemctl stop ${unit}`]);

  rmSync(join(root.folder, 'words'));
  for (const word of [undefined, '--', '--version', 'serve']) {
    assert.equal(control(...(word === undefined ? [] : [word])).status, 2, word);
  }
  assert.match(control('--help').stdout, /^Usage: pastedctl COMMAND/);
  root.standIn('id', '#!/bin/sh\necho 1000\n');
  assert.deepEqual([control('stats').status, control('stats').stdout], [1, '']);
  root.standIn('id', '#!/bin/sh\necho 0\n');
  rmSync(join(root.folder, 'run/systemd'), { recursive: true });
  assert.match(control('stats').output, /^pastedctl: systemd does not run here/);
  assert.ok(!existsSync(join(root.folder, 'words')));
});

test('Debian package: is configured where a unit is masked', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  writeFileSync(join(root.folder, 'masked'), '');
  const packages = thePackages();
  assert.equal(root.dpkg('-i', packages.nodejs, packages.pasted).status, 0);
});

test('pastedctl: a signal that it gets ends the command', async (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  assert.equal(root.dpkg('-i', packages.nodejs, packages.pasted).status, 0);
  root.standIn('id', '#!/bin/sh\necho 0\n');
  // The command runs until systemd is told to stop it.
  root.standIn('systemd-run', '#!/bin/sh\n: >/runs\nwhile [ ! -e /stopped ]; do sleep 0.05; done\nexit 143\n');
  root.standIn('systemctl', '#!/bin/sh\n: >/stopped\n');
  const line = '/usr/sbin/pastedctl audit --follow <&- & until [ -e /runs ]; do sleep 0.05; done; kill -TERM $!; wait $!';
  assert.equal(root.run('/bin/sh', '-c', line).status, 143);
});

test('Debian package: comes and goes though systemd fails, and leaves no unit enabled', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  for (const program of ['deb-systemd-invoke', 'systemctl']) root.standIn(program, '#!/bin/sh\nexit 5\n');
  assert.equal(root.dpkg('-i', packages.nodejs, packages.pasted).status, 0);
  assert.equal(root.dpkg('-i', packages.newer).status, 0);
  const wants = join(root.folder, 'etc/systemd/system/multi-user.target.wants');
  mkdirSync(wants, { recursive: true });
  symlinkSync('/usr/lib/systemd/system/pasted-tcp.service', join(wants, 'pasted-tcp.service'));
  for (const how of ['-r', '-P']) {
    const { status, output } = root.dpkg(how, 'pasted');
    assert.equal(status, 0, output);
  }
  assert.deepEqual(readdirSync(wants), []);
});

test('Debian package: installs and is purged where there is no systemd', (t) => {
  const root = debianRoot(t);
  if (root === undefined) return;
  const packages = thePackages();
  for (const path of ['run/systemd', 'usr/bin/systemctl', 'usr/bin/deb-systemd-helper', 'usr/bin/deb-systemd-invoke']) {
    rmSync(join(root.folder, path), { recursive: true });
  }
  for (const args of [['-i', packages.nodejs, packages.pasted], ['-P', 'pasted']]) {
    const { status, output } = root.dpkg(...args);
    assert.equal(status, 0, output);
    assert.doesNotMatch(output, /not found|error/);
  }
  assert.ok(!existsSync(join(root.folder, 'etc/pasted')));
});
