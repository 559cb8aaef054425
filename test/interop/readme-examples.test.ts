// The three examples of "Who may use it", as printed: root's lines in a root with the Debian package, nginx as they
// configure it, but for its ports, in front of the service, and the lines of its users outside.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { commandLines, type CommandLines } from '../support/command-lines.ts';
import { thePackages } from '../support/debian-package.ts';
import { RECORDER, type DebianRoot } from '../support/debian-root.ts';
import { run } from '../support/programs.ts';
import { freePorts, startProxy } from '../support/proxy.ts';
import { blocksUnder } from '../support/readme.ts';
import { furnish, type Host } from '../support/server-host.ts';

const SITE = 'paste.example';
const LIVE = `/etc/letsencrypt/live/${SITE}`;

/** As much of Debian's nginx.conf as counts here. */
const NGINX_CONF = 'user www-data;\nevents {}\nhttp {\n  include /etc/nginx/conf.d/*.conf;\n}\n';

interface Server {
  readonly root: DebianRoot;
  readonly host: Host;
}

/** Installs the package, with a certificate in certbot's place; nginx and sysctl only write down their calls. */
function prepareServer(t: TestContext, ...programs: readonly string[]): Server | undefined {
  const furnished = furnish(t, 'nginx', 'mkdir', ...programs);
  if (furnished === undefined) return undefined;
  const { root, host } = furnished;
  copyFileSync(host.path('usr/bin/nginx'), host.path('usr/bin/the-nginx'));
  for (const name of ['nginx', 'sysctl']) root.standIn(name, RECORDER);
  const folders = [LIVE, 'etc/nginx/conf.d', 'etc/sysctl.d', 'var/log/nginx', 'var/lib/nginx', 'run'];
  for (const folder of folders) mkdirSync(host.path(folder), { recursive: true });
  // In a user namespace there is one user and one group: www-data is another name of root.
  writeFileSync(host.path('etc/passwd'), 'www-data:x:0:0::/:/bin/sh\n');
  writeFileSync(host.path('etc/group'), 'www-data:x:0:\n');
  writeFileSync(host.path('etc/nginx/nginx.conf'), NGINX_CONF);
  const { pasted, nodejs } = thePackages();
  assert.equal(root.dpkg('-i', nodejs, pasted).status, 0);
  host.shell(`cd ${LIVE}`, `pasted tls self-signed --host ${SITE},127.0.0.1`, 'mv server.crt fullchain.pem',
    'mv server.key privkey.pem');
  root.calls();
  return furnished;
}

/** Starts nginx with the file that the lines wrote; gives the address of its HTTPS. */
async function startNginx(t: TestContext, { root, host }: Server, name: string): Promise<string> {
  const [httpPort = 0, httpsPort = 0] = await freePorts(2);
  const file = host.path(name);
  const text = readFileSync(file, 'utf8');
  const ours = text.replace(/listen \[::\]:.*;/g, '').replace('listen 80;', `listen 127.0.0.1:${httpPort};`)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${httpsPort} ssl;`)
    .replaceAll('127.0.0.1:8080', new URL(host.url()).host);
  writeFileSync(file, ours);
  const command = root.command('/usr/bin/the-nginx', '-e', 'stderr', '-g', 'daemon off; error_log stderr notice;');
  await startProxy(t, command, { isServing: /start worker process \d/ });
  return `https://127.0.0.1:${httpsPort}`;
}

/** The lines before and after that comment: root's, and those of users, who trust the server's certificate. */
function parts(lines: readonly string[], comment: string): { ofRoot: string[]; ofUsers: string[] } {
  const at = lines.indexOf(comment);
  assert.notEqual(at, -1, comment);
  return { ofRoot: lines.slice(0, at), ofUsers: lines.slice(at + 1) };
}

function userOf(t: TestContext, { host }: Server): { shell: CommandLines; trust: string } {
  return { shell: commandLines(t), trust: `export CURL_CA_BUNDLE='${host.path(`${LIVE}/fullchain.pem`)}'` };
}

function examples(replacements: Readonly<Record<string, string>> = {}): string[][] {
  const blocks = blocksUnder('Who may use it', replacements);
  assert.equal(blocks.length, 3);
  return blocks;
}

test('README: open to the world, as printed', async (t) => {
  const server = prepareServer(t);
  if (server === undefined) return;
  const { root, host } = server;
  const [lines = []] = examples();
  host.shell(...lines);
  assert.deepEqual(root.calls(), ['sysctl --system', 'systemctl restart pasted.service']);
  assert.ok(statSync(host.path('etc/sysctl.d/60-pasted.conf')).size > 0);
  await host.restart();
  const { stdout } = run('curl', ['-sS', `${host.url()}/`], '/');
  assert.equal((JSON.parse(stdout) as { contact?: string }).contact, `mailto:abuse@${SITE}`);
  assert.match(host.shell('pastedctl config'), /^SERVICE_MAX_STORAGE\s+21474836480\b/m);
});

test('README: a company by invitation, as printed', async (t) => {
  const server = prepareServer(t);
  if (server === undefined) return;
  const { root, host } = server;
  const [install = []] = blocksUnder('On a server in five minutes');
  const [proxy = []] = blocksUnder('Behind a proxy');
  host.shell(install[1]!);
  await host.restart();
  host.shell(...install.slice(3, 4), ...proxy);
  root.calls();

  const { ofRoot } = parts(examples()[1]!, '# Alice, on her machine:');
  const said = host.shell(...ofRoot);
  const code = /^code +([a-z2-7]{26})$/m.exec(said)?.[1] ?? assert.fail(said);
  assert.deepEqual(root.calls(), ['nginx -t', 'systemctl restart nginx.service', 'systemctl restart pasted.service']);
  assert.equal(statSync(host.path('etc/pasted/proxy-secret.conf')).mode & 0o777, 0o600);
  await host.restart();
  const url = await startNginx(t, server, 'etc/nginx/nginx.conf');

  const { ofUsers } = parts(examples({ [`https://${SITE}`]: url })[1]!, '# Alice, on her machine:');
  const [fetch = '', register = '', store = '', ...more] = ofUsers;
  assert.deepEqual(more, []);
  const { shell, trust } = userOf(t, server);
  await shell.run(`${trust}; ${fetch}`);
  const uninvited = await shell.run(`${trust}; ./pastec --name mallory register 2>&1 || :; date | ./pastec 2>&1 || :`);
  assert.match(uninvited, /invitation[^]*certificate/);
  await shell.run(`${trust}; echo ${code} | ${register}`);
  const paste = (await shell.run(`${trust}; ${store}`)).trim();
  assert.ok(paste.startsWith(`${url}/`), paste);
  assert.match(await shell.run(`${trust}; ./pastec ls; curl -fsS ${paste}/raw`), /text\/plain[^]*:\d\d/);
  assert.match(await shell.run(`${trust}; ./pastec status`), /^trusted: up to 52428800 bytes, kept for 2592000 s/m);
  const again = await shell.run(`${trust}; echo ${code} | ./pastec register --force --invite - 2>&1 || :`);
  assert.match(again, /invitation/, 'it was for one');
});

test('README: a family by password, as printed', async (t) => {
  const server = prepareServer(t);
  if (server === undefined) return;
  const { root, host } = server;
  const comment = '# Each of the family, on their machines, with the password in place of PASSWORD:';
  const { ofRoot } = parts(examples()[2]!, comment);
  // openssl asks on the terminal, twice; without a terminal it reads the lines that it is given here.
  const asked = ofRoot.map((line) => line.replace('$(openssl', '$(printf "our-word\\nour-word\\n" | openssl'));
  assert.notDeepEqual(asked, ofRoot);
  host.shell(...asked);
  assert.deepEqual(root.calls(), ['nginx -t', 'systemctl restart nginx.service', 'systemctl restart pasted.service']);
  assert.equal(statSync(host.path('etc/nginx/pasted.users')).mode & 0o777, 0o640);
  await host.restart();
  const url = await startNginx(t, server, 'etc/nginx/conf.d/pasted.conf');

  const { host: address } = new URL(url);
  const { ofUsers } = parts(examples({
    [`https://${SITE}`]: url, [`machine ${SITE}`]: 'machine 127.0.0.1', PASSWORD: 'our-word',
  })[2]!, comment.replace('PASSWORD', 'our-word'));
  const { shell, trust } = userOf(t, server);
  const [, fetch = ''] = ofUsers;
  const without = await shell.run(`${trust}; ${fetch.replace('-fsSn', '-fsS -u family:our-word')}; ./pastec status 2>&1 || :`);
  assert.match(without, /a proxy asks for a password/);
  assert.equal(await shell.run(`${trust}; curl -sS -o /dev/null -w '%{http_code}' ${url}/client`), '401');
  const paste = (await shell.run([trust, ...ofUsers].join('\n'))).trim();
  assert.ok(paste.startsWith(`https://${address}/`), paste);
  assert.equal(await shell.run(`${trust}; curl -sS -o /dev/null -w '%{http_code}' ${paste}/raw`), '401');
  assert.match(await shell.run(`${trust}; ./pastec get ${paste}; ./pastec status`), /:\d\d [^]*^registering: closed$/m);
  await shell.run(`${trust}; ./pastec rm ${paste}`);
  assert.equal(await shell.run(`${trust}; curl -nsS -o /dev/null -w '%{http_code}' ${paste}/raw`), '404');
  const claimed = `curl -nsS -H 'X-SSL-Client-SHA1: ${'a'.repeat(40)}' -o /dev/null -w '%{http_code}' ${url}/pastes`;
  assert.equal(await shell.run(`${trust}; ${claimed}`), '401', 'nobody has an identity here');
});
