// scripts/deploy/nginx.conf in a real nginx, with real mutual TLS.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { connect } from 'node:tls';
import { writeFiles } from '../support/pki.ts';
import { isInstalled } from '../support/programs.ts';
import { checkProxy, checkSettingForgotten, checkSha1Alone, checkWithoutHost } from '../support/proxy-checks.ts';
import {
  deployed, prepareSite, PROXY_SECRET, SHA1_INSTEAD, startProxy, type Replacements, type RunningProxy, type Site,
} from '../support/proxy.ts';
import { openRaw } from '../support/raw-http.ts';

/** Where Debian's nginx would put temporary files, which only root may. */
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

async function startNginx(t: TestContext, site: Site, changes: Replacements = []): Promise<RunningProxy> {
  const { app, folder, httpPort, httpsPort } = site;
  mkdirSync(join(folder, 'temporary'));
  const paths = TEMPORARY.map((name) => `${name}_temp_path ${join(folder, 'temporary', name)};`).join(' ');
  const log = join(folder, 'error.log');
  const config = deployed('nginx.conf', [
    [/^user .*;$/m, ''],
    [/\/run\/nginx\.pid/, join(folder, 'nginx.pid')],
    [/error_log .* crit;/, 'error_log stderr notice;'],
    // Errors of requests are logged as deployed, but all messages of the processes are: they say when nginx serves.
    [/^http \{$/m, `http { ${paths} error_log ${log} crit;`],
    [/\/etc\/pasted/g, folder],
    [/\/etc\/letsencrypt\/\S*fullchain\.pem/, join(folder, 'server.crt')],
    [/\/etc\/letsencrypt\/\S*privkey\.pem/, join(folder, 'server.key')],
    [/server 127\.0\.0\.1:8080;/, `server 127.0.0.1:${app.port};`],
    [/listen \[::\]:.*;/g, ''],
    [/listen 80;/, `listen 127.0.0.1:${httpPort};`],
    [/listen 443 ssl;/, `listen 127.0.0.1:${httpsPort} ssl;`],
    ...changes,
  ]);
  writeFiles(folder, {
    'nginx.conf': config,
    'proxy-secret.conf': `proxy_set_header X-Proxy-Secret "${PROXY_SECRET}";`,
  });
  const command = ['nginx', '-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off;'];
  const nginx = await startProxy(t, command, { isServing: /start worker process \d/ });
  return { ...nginx, said: () => nginx.said() + readFileSync(log, 'utf8') };
}

/** Waits for each of the old workers, since one of them would still go by what was read before. */
function reloading(nginx: RunningProxy): () => Promise<void> {
  const workers = (words: RegExp) => [...nginx.said().matchAll(words)].map(([, pid = '']) => pid);
  return () => {
    const ended = new Set(workers(/worker process (\d+) exited/g));
    const old = workers(/start worker process (\d+)/g).filter((pid) => !ended.has(pid));
    const all = old.map((pid) => `(?=[^]*worker process ${pid} exited with code 0)`);
    return nginx.signal('SIGHUP', new RegExp(all.join('')));
  };
}

test('nginx: as deployed, with client certificates of the service', async (t) => {
  for (const program of ['nginx', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t);
  const nginx = await startNginx(t, site);
  await t.test('HTTP/1.0 without a Host is answered', (step) => checkWithoutHost(step, site));
  await checkProxy(t, site, nginx, reloading(nginx));
});

test('nginx: as deployed before a service without the setting, everyone is anonymous', async (t) => {
  for (const program of ['nginx', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t, 'x-ssl-client-sha1');
  await startNginx(t, site);
  await checkSettingForgotten(site);
});

test('nginx: with the SHA-1 alone, a rewritten signature is untrusted until the list is read', async (t) => {
  for (const program of ['nginx', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t, 'x-ssl-client-sha1');
  const sha1Alone = [...SHA1_INSTEAD, [/\$ssl_client_escaped_cert/, '$$ssl_client_fingerprint']] as const;
  await checkSha1Alone(site, reloading(await startNginx(t, site, sha1Alone)));
});

test('nginx: who sends half a head holds no connection for long, on either port', async (t) => {
  for (const program of ['nginx', 'openssl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t);
  // Sooner than as deployed, but still by this setting: nginx's default is longer than anything waits for here.
  await startNginx(t, site, [[/client_header_timeout 10s;/, 'client_header_timeout 1s;']]);
  const plain = await openRaw(t, site.httpPort);
  plain.send('GET /health HTTP/1.1\r\nX-Half');
  const secure = connect({ port: site.httpsPort, host: '127.0.0.1', rejectUnauthorized: false });
  t.after(() => secure.destroy());
  const closed = once(secure.resume(), 'close', { signal: AbortSignal.timeout(15_000) });
  secure.write('GET /health HTTP/1.1\r\nX-Half');
  assert.equal(await plain.rest(), '');
  await closed;
});

test('nginx with passwords: who sends half a head holds no connection for long, where another site is the first too', async (t) => {
  for (const program of ['nginx', 'openssl']) if (!isInstalled(t, program)) return;
  const { folder, httpPort, httpsPort } = await prepareSite(t);
  const config = deployed('nginx-passwords.conf', [
    [/client_header_timeout 10s;/, 'client_header_timeout 1s;'],
    [/error_log .* crit;/, 'error_log stderr crit;'],
    [/\/etc\/(?:pasted|nginx)/g, folder],
    [/\/etc\/letsencrypt\/\S*fullchain\.pem/, join(folder, 'server.crt')],
    [/\/etc\/letsencrypt\/\S*privkey\.pem/, join(folder, 'server.key')],
    [/listen \[::\]:.*;/g, ''],
    [/listen 80;/, `listen 127.0.0.1:${httpPort};`],
    [/listen 443 ssl;/, `listen 127.0.0.1:${httpsPort} ssl;`],
  ]);
  const paths = TEMPORARY.map((name) => `${name}_temp_path ${join(folder, name)};`).join(' ');
  writeFiles(folder, {
    'pasted.conf': config,
    'proxy-secret.conf': `proxy_set_header X-Proxy-Secret "${PROXY_SECRET}";`,
    // Like Debian's, where Debian's own site is the first on port 80.
    'nginx.conf': `pid ${folder}/pid; events {} http { ${paths} access_log off; include ${folder}/pasted.conf;
      server { listen 127.0.0.1:${httpPort} default_server; } }`,
  });
  const command = ['nginx', '-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')];
  await startProxy(t, [...command, '-g', 'daemon off; error_log stderr notice;'], { isServing: /start worker process \d/ });
  const plain = await openRaw(t, httpPort);
  plain.send('GET /health HTTP/1.1\r\nX-Half');
  assert.equal(await plain.rest(), '');
});
