// scripts/deploy/nginx.conf and apache.conf on a host with other sites, put together as the head of each file says. The
// service is away, so that the proxies have something to log.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { writeFiles } from '../support/pki.ts';
import { isInstalled, temporaryFolder } from '../support/programs.ts';
import { deployed, freePorts, startProxy } from '../support/proxy.ts';

const ID = 'dm5nqp7xk2vhs4tjw3rzy6ubae';

/** What stands in the comment above everything else, on one line. */
function headOf(config: string): string {
  return config.slice(0, config.indexOf('\n\n')).replaceAll(/\n# ?/g, ' ');
}

/** Asks for a paste, which nobody answers; everything in the folder `logs` must be silent about it. */
async function checkLogs(port: number, logs: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/${ID}/raw`);
  assert.ok([502, 503].includes(answer.status), `${answer.status}`);
  await answer.text();
  const names = readdirSync(logs);
  assert.ok(names.length > 0);
  for (const name of names) assert.doesNotMatch(readFileSync(join(logs, name), 'utf8'), new RegExp(ID), name);
}

async function prepare(t: TestContext) {
  const folder = temporaryFolder(t);
  const logs = join(folder, 'logs');
  mkdirSync(logs);
  const [port = 0, nobody = 0] = await freePorts(2);
  return { folder, logs, port, nobody };
}

test('nginx: beside other sites, as the head of its file says, no path of a paste is logged', async (t) => {
  if (!isInstalled(t, 'nginx')) return;
  const { folder, logs, port, nobody } = await prepare(t);
  const config = deployed('nginx.conf', [
    [/\/etc\/pasted/g, folder],
    [/server 127\.0\.0\.1:8080;/, `server 127.0.0.1:${nobody};`],
    [/listen \[::\]:.*;/g, ''],
    [/listen 80;/, `listen 127.0.0.1:${port};`],
    [/\/var\/log\/nginx/, logs],
  ]);
  const [, inHttp = ''] = /^http \{\n([^]*)\n\}$/m.exec(config) ?? [];
  const blocks = inHttp.match(/^  (?:upstream|map|server) [^]*?\n  \}$/gm) ?? [];
  const [server = ''] = blocks.filter((block) => block.startsWith('  server {'));
  const [timeout = ''] = /^  client_header_timeout .*$/m.exec(inHttp) ?? [];
  assert.match(headOf(config), /upstream, map, client_header_timeout and both servers are a file of their own/);
  const others = [...blocks.filter((block) => !block.startsWith('  server {')), timeout];
  const [, named = ''] = /and (.*) goes into each of the two servers/.exec(headOf(config)) ?? [];
  assert.match(named, /all else that is inside http \{\}/);
  const moved = [
    [...blocks, timeout].reduce((left, block) => left.replace(block, ''), inHttp),
    ...(named.match(/\b\w+_log\b/g) ?? []).map((directive) => new RegExp(`^${directive} .*$`, 'm').exec(config)?.[0]),
  ];
  writeFiles(folder, {
    'proxy-secret.conf': 'proxy_set_header X-Proxy-Secret "a secret";',
    'pasted.conf': [...others, server.replace('{', `{\n${moved.join('\n')}\n`)].join('\n'),
    // Like Debian's nginx.conf.
    'nginx.conf': `
      pid ${folder}/nginx.pid;
      error_log ${logs}/others-error.log;
      events {}
      http {
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
        access_log ${logs}/others-access.log;
        include ${folder}/pasted.conf;
      }`,
  });
  const command = ['nginx', '-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')];
  const options = { isServing: /start worker process \d/ };
  await startProxy(t, [...command, '-g', 'daemon off; error_log stderr notice;'], options);
  await checkLogs(port, logs);
});

test('Apache: beside other sites, as the head of its file says, no path of a paste is logged', async (t) => {
  if (!isInstalled(t, 'apache2')) return;
  const { folder, logs, port, nobody } = await prepare(t);
  const config = deployed('apache.conf', [
    [/\/etc\/pasted/g, folder],
    [/127\.0\.0\.1:8080/g, `127.0.0.1:${nobody}`],
    [/\*:80>/, `*:${port}>`],
    [/\/var\/log\/apache2/, logs],
  ]);
  const [, from = '', more = ''] = /from (\w+) on .*\. `([^`]+)` goes there too/.exec(headOf(config)) ?? [];
  const moved = config.slice(config.indexOf(`\n${from} `), config.indexOf('<VirtualHost'));
  const [site = ''] = /^<VirtualHost[^]*?\n<\/VirtualHost>$/m.exec(config) ?? [];
  writeFiles(folder, {
    'proxy-secret.conf': 'RequestHeader set X-Proxy-Secret "a secret"',
    'pasted.conf': site.replace('\n</', `\n${moved.replace(/^SSLSessionCache .*$/m, '')}\n${more}\n</`),
    // Like Debian's, with its conf-enabled/other-vhosts-access-log.conf.
    'apache.conf': `
      ServerRoot /usr/lib/apache2
      ${config.match(/^LoadModule .*$/gm)!.join('\n')}
      DefaultRuntimeDir ${folder}
      PidFile ${folder}/apache2.pid
      Listen 127.0.0.1:${port}
      ServerName localhost
      ErrorLog "|/usr/bin/tee ${logs}/others-error.log"
      LogLevel warn
      CustomLog ${logs}/others-access.log "%v %h %r %>s"
      Include ${folder}/pasted.conf`,
  });
  const command = ['apache2', '-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')];
  await startProxy(t, command, { isServing: /resuming normal operations/ });
  await checkLogs(port, logs);
});
