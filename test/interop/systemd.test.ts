// scripts/deploy/systemd as systemd's own programs judge it (Debian package `systemd`), and what can be tried of the
// units without a running systemd: the reason of each line, node's options, a socket handed over.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { KIB } from '../../src/core/time.ts';
import { startServing } from '../support/main-process.ts';
import { isInstalled, run, temporaryFolder, type Finished } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';
import { directivesOf, execStartOf, startedAs, UNITS_FOLDER as FOLDER } from '../support/unit-start.ts';

const FILES = readdirSync(FOLDER).filter((file) => /\.(?:service|socket|conf)$/.test(file)).sort();
const SERVICES = ['pasted.service', 'pasted-tcp.service'] as const;

/** In tenths, as --threshold counts: 2 is printed as "0.2". */
const MOST_EXPOSED = { 'pasted.service': 2, 'pasted-tcp.service': 11 } as const;

function linesOf(file: string): string[] {
  return readFileSync(join(FOLDER, file), 'utf8').split('\n');
}

function unitsIn(folder: string): string {
  for (const file of FILES) copyFileSync(join(FOLDER, file), join(folder, file));
  return folder;
}

test('systemd units: every line has its reason above it', () => {
  // Lines that name the unit, and say where it is enabled, speak for themselves.
  const plain = /^(?:Description|Documentation|WantedBy)=/;
  for (const file of FILES) {
    const lines = linesOf(file);
    for (const [index, line] of lines.entries()) {
      assert.ok(line.length <= 120 || line.startsWith('ExecStart='), `${file}: ${line}`);
      if (!/^[A-Z]/.test(line) || plain.test(line)) continue;
      const above = lines[index - 1] ?? '';
      const isListed = above.split('=', 1)[0] === line.split('=', 1)[0];
      assert.ok(isListed || above.startsWith('# '), `${file}: ${line}`);
    }
  }
});

const LISTS = ['After', 'AssertFileIsExecutable', 'SystemCallFilter', 'LoadCredential'];

test('systemd units: what ends one starts it again, a SIGHUP before there is a handler too, but settings that cannot be used', () => {
  for (const unit of ['pasted.service', 'pasted-tcp.service']) {
    const text = readFileSync(join(ROOT, 'scripts', 'deploy', 'systemd', unit), 'utf8');
    for (const line of ['Restart=on-failure', 'RestartPreventExitStatus=78', 'RestartForceExitStatus=SIGHUP']) {
      assert.ok(text.split('\n').includes(line), `${unit}: ${line}`);
    }
  }
});

test('systemd units: no directive stands twice, but for lists', () => {
  for (const file of FILES) {
    const names = directivesOf(file).map((line) => line.split('=', 1)[0]!);
    const twice = names.filter((name, index) => names.indexOf(name) !== index);
    assert.deepEqual(twice.filter((name) => !LISTS.includes(name)), [], file);
  }
});

test('systemd units: the two services differ in how they listen, and in nothing else', () => {
  const [socket = [], tcp = []] = SERVICES.map(directivesOf);
  const only = (these: string[], those: string[]) => {
    return these.filter((line) => !those.includes(line) && !line.startsWith('ExecStart='));
  };
  assert.deepEqual(only(socket, tcp), [
    'Description=Paste service',
    'Requires=pasted.socket',
    'After=pasted.socket',
    'Conflicts=pasted-tcp.service',
    'StartLimitIntervalSec=10s',
    'StartLimitBurst=20',
    'PrivateNetwork=yes',
    'RestrictAddressFamilies=none',
    'IPAddressDeny=any',
    'Also=pasted.socket',
  ]);
  assert.deepEqual(only(tcp, socket), [
    'Description=Paste service on its own port',
    'Wants=network-online.target',
    'After=network-online.target',
    'Conflicts=pasted.service pasted.socket',
    'StartLimitIntervalSec=0',
    'RuntimeDirectory=pasted',
    'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
  ]);
  const [behind, alone] = SERVICES.map(execStartOf);
  assert.equal(behind!.script, alone!.script);
  const ofItsSocket = ['--allow-fs-read=%t/pasted', '--allow-fs-write=%t/pasted'];
  assert.deepEqual(alone!.options.filter((option) => !ofItsSocket.includes(option)), behind!.options);
  assert.deepEqual(ofItsSocket.filter((option) => !alone!.options.includes(option)), []);
});

test('systemd units: wait for the clock where the host does, since what has expired by it is removed', () => {
  for (const unit of SERVICES) {
    const lines = directivesOf(unit);
    assert.ok(lines.includes('After=time-set.target time-sync.target'), unit);
    // The unit pulls neither target in: where nobody waits for the clock, nothing is held up.
    assert.deepEqual(lines.filter((line) => /^(?:Wants|Requires|BindsTo)=.*time-/.test(line)), [], unit);
  }
});

test('sysctl.conf: sets what this kernel has, and takes no more room than a slice of an answer or two', () => {
  const lines = readFileSync(join(ROOT, 'scripts', 'deploy', 'sysctl.conf'), 'utf8').split('\n');
  const settings = lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(' = '));
  assert.deepEqual(settings.map(([name]) => name), ['net.ipv4.tcp_notsent_lowat']);
  const [[name = '', value] = []] = settings;
  assert.match(readFileSync(join('/proc/sys', ...name.split('.')), 'utf8'), /^\d+$/m);
  assert.equal(Number(value), 2 * 64 * KIB);
});

function judge(unit: string, mostExposed: number): Finished {
  return run('systemd-analyze', ['security', '--offline=yes', `--threshold=${mostExposed}`, unit], ROOT);
}

test('systemd-analyze security: exposure of at most 0.2 behind a socket, and 1.1 with a port', (t) => {
  if (!isInstalled(t, 'systemd-analyze')) return;
  for (const unit of SERVICES) {
    const { status, output } = judge(join(FOLDER, unit), MOST_EXPOSED[unit]);
    assert.equal(status, 0, output);
    assert.match(output, /Overall exposure level for pasted/);
  }
});

test('systemd-analyze security: the threshold would object to a service without restrictions', (t) => {
  if (!isInstalled(t, 'systemd-analyze')) return;
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'open.service'), '[Service]\nExecStart=/bin/true\n');
  assert.equal(judge(join(folder, 'open.service'), 11).status, 1);
});

test('systemd-analyze verify: has nothing to say against the units, nor with the drop-ins for TLS and metrics', (t) => {
  if (!isInstalled(t, 'systemd-analyze')) return;
  const folder = unitsIn(temporaryFolder(t));
  // --man=no: the manual comes with the package, and not with the repository.
  const units = FILES.filter((file) => !file.endsWith('.conf')).map((file) => join(folder, file));
  const verify = () => run('systemd-analyze', ['verify', '--man=no', ...units], folder);
  assert.deepEqual(verify(), { status: 0, stdout: '', output: '' });
  const dropIns = join(folder, 'pasted.service.d');
  mkdirSync(dropIns);
  for (const name of ['metrics.conf', 'tls.conf']) {
    copyFileSync(join(folder, name), join(dropIns, name));
    assert.deepEqual(verify(), { status: 0, stdout: '', output: '' }, name);
  }
  writeFileSync(join(dropIns, 'wrong.conf'), '[Service]\nProtectSystem=sometimes\n');
  assert.match(verify().output, /ProtectSystem|sometimes/, 'it looks at drop-ins');
});

test('systemd units: node takes the options of ExecStart, and the service runs with them', async (t) => {
  for (const unit of SERVICES) {
    const data = temporaryFolder(t);
    const main = await startServing(t, { ...startedAs(unit, data), environment: { SERVICE_DB: join(data, 'pasted.db') } });
    assert.equal((await fetch(`${main.url}/health`)).status, 200);
    main.child.kill('SIGTERM');
    assert.equal(await main.ended, 0);
    assert.equal(main.stderr(), '');
  }
});

test('pastedctl: a command has of the service all that decides whose files, secrets and settings it uses', () => {
  const script = linesOf('pastedctl').map((line) => line.trim().replace(/ \\$/, ''));
  const properties = script.flatMap((line) => /^--property='?(.*?)'?$/.exec(line)?.[1] ?? []);
  // What the command writes for a while, such as the copy of a cluster's database, goes where it may write.
  const own = properties.filter((property) => /^(?:ReadOnlyPaths|Environment=TMPDIR)=/.test(property));
  assert.deepEqual(own, ['Environment=TMPDIR=/var/lib/pasted', 'ReadOnlyPaths=/tmp /var/tmp']);
  const shared = properties.filter((property) => !own.includes(property));
  const deciding = /^(?:Environment|EnvironmentFile|\w+Credential|(?:Dynamic)?User|StateDirectory\w*|UMask)=/;
  for (const unit of SERVICES) {
    const directives = directivesOf(unit);
    assert.deepEqual(shared.filter((property) => !directives.includes(property)), [], unit);
    assert.deepEqual(directives.filter((line) => deciding.test(line) && !shared.includes(line)), [], unit);
    // Of node's options the command has all but the permissions.
    const { options } = execStartOf(unit);
    const common = options.filter((option) => !/^--(?:permission$|allow-|disable-warning=)/.test(option));
    assert.equal(common.length, 4);
    assert.ok(script.join(' ').includes(` "$node" ${common.join(' ')} /usr/lib/pasted/main.js "$@" <&3`), unit);
    const [, first, last] = /^ExecSearchPath=(.*):(.*)$/m.exec(directives.join('\n')) ?? [];
    const choice = script.indexOf(`node=${first}/node`);
    assert.equal(script[choice + 1], `[ -x "$node" ] || node=${last}/node`, unit);
    const asserted = directives.filter((line) => line.startsWith('AssertFileIsExecutable='));
    assert.deepEqual(asserted, [first, last].map((place) => `AssertFileIsExecutable=|${place}/node`), unit);
  }
});

test('pastedctl: words behind the command, such as the id of a paste, reach the command and no log', (t) => {
  const folder = temporaryFolder(t);
  // Looks to the script like a host with systemd.
  const script = readFileSync(join(FOLDER, 'pastedctl'), 'utf8').replace('-d /run/systemd/system', '-d /');
  const standIns = { id: 'echo 0', 'systemd-run': 'printf "%s\\n" "$@"', pastedctl: script.replace(/^#!.*\n/, '') };
  for (const [name, lines] of Object.entries(standIns)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  }
  const words = ['paste', 'show', 'dm5nqp7xk2vhs4tjw3rzy6ubae'];
  const { status, stdout } = run('env', [`PATH=${folder}:${process.env['PATH']}`, 'pastedctl', ...words], folder);
  const [ofSystemd = '', ofCommand] = stdout.split('/usr/lib/pasted/main.js\n');
  assert.deepEqual([status, ofCommand], [0, `${words.join('\n')}\n`]);
  assert.match(ofSystemd, /^--description=pasted paste$/m);
  assert.ok(!ofSystemd.includes('dm5nqp'), ofSystemd);
});

test('pastedctl: its help and the manual have root open nothing in the folder of the service', () => {
  const manual = readFileSync(join(ROOT, 'scripts', 'release', 'manual.mjs'), 'utf8');
  const help = run('sh', [join(FOLDER, 'pastedctl'), '--help'], ROOT).output;
  for (const text of [help, manual]) {
    const command = /^\W*(?:umask 077; )?(?:pastedctl|mv|cp|install|chown|rm) /;
    const lines = text.split('\n').filter((line) => command.test(line));
    assert.ok(lines.length >= 4, text);
    assert.deepEqual(lines.filter((line) => line.includes('/var/lib')), []);
  }
});

test('systemd-socket-activate: the service serves on the socket that it is handed', async (t) => {
  if (!isInstalled(t, 'systemd-socket-activate')) return;
  const cwd = temporaryFolder(t);
  const socketPath = join(cwd, 'http');
  const { through, nodeOptions, build } = startedAs('pasted.service', cwd);
  const env = { PATH: process.env.PATH, SERVICE_DB: join(cwd, 'pasted.db') };
  const words = ['--listen', socketPath, ...through, ...nodeOptions, build, 'serve'];
  const activate = spawn('systemd-socket-activate', words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(activate, 'close');
  t.after(async () => {
    activate.kill('SIGKILL');
    await ended;
  });
  // systemd-socket-activate says so on standard error, and becomes the service when the first client comes.
  await once(activate.stderr, 'data');
  let log = '';
  activate.stdout.setEncoding('utf8').on('data', (text) => (log += text));
  const status = await new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: '/health', agent: false }, (res) => resolve(res.resume().statusCode));
    sent.on('error', reject).end();
  });
  assert.equal(status, 200);
  activate.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  assert.match(log, / listening {2}url=unix:\(inherited\) /);
});
