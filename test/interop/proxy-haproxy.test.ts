// scripts/deploy/haproxy.cfg in a real HAProxy, with real mutual TLS.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { writeFiles } from '../support/pki.ts';
import { isInstalled } from '../support/programs.ts';
import { checkProxy, checkSettingForgotten, checkSha1Alone, checkWithoutHost } from '../support/proxy-checks.ts';
import {
  deployed, prepareSite, PROXY_SECRET, SHA1_INSTEAD, startProxy, type Replacements, type RunningProxy, type Site,
} from '../support/proxy.ts';

async function startHaproxy(t: TestContext, site: Site, changes: Replacements = []): Promise<RunningProxy> {
  const { app, folder, httpPort, httpsPort } = site;
  const config = deployed('haproxy.cfg', [
    // Removes what only root may do, and what only a host has.
    [/^ +(?:user|group|chroot) .*\n/gm, ''],
    [/log \/dev\/log local0/, 'log stderr format raw local0'],
    [/\/etc\/pasted/g, folder],
    [/^  server pasted 127\.0\.0\.1:8080/m, `server pasted 127.0.0.1:${app.port}`],
    [/^ +bind :::.*\n/gm, ''],
    [/bind :80$/m, `bind 127.0.0.1:${httpPort}`],
    [/bind :443 /, `bind 127.0.0.1:${httpsPort} `],
    ...changes,
  ]);
  const [certificate, key] = ['server.crt', 'server.key'].map((name) => readFileSync(join(folder, name), 'utf8'));
  writeFiles(folder, { 'haproxy.cfg': config, 'server.pem': `${certificate}${key}` });
  const environment = { PASTED_PROXY_SECRET: PROXY_SECRET };
  const command = ['haproxy', '-W', '-f', join(folder, 'haproxy.cfg')];
  return startProxy(t, command, { isServing: /Loading success/, environment });
}

function reloading(haproxy: RunningProxy): () => Promise<void> {
  return () => haproxy.signal('SIGUSR2', /Former worker .* exited with code 0/);
}

test('HAProxy: as deployed, with client certificates of the service', async (t) => {
  for (const program of ['haproxy', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t);
  const haproxy = await startHaproxy(t, site);
  await t.test('HTTP/1.0 without a Host is answered', (step) => checkWithoutHost(step, site));
  await checkProxy(t, site, haproxy, reloading(haproxy));
});

test('HAProxy: as deployed before a service without the setting, everyone is anonymous', async (t) => {
  for (const program of ['haproxy', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t, 'x-ssl-client-sha1');
  await startHaproxy(t, site);
  await checkSettingForgotten(site);
});

test('HAProxy: with the SHA-1 alone, a rewritten signature is untrusted until the list is read', async (t) => {
  for (const program of ['haproxy', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t, 'x-ssl-client-sha1');
  const sha1Alone = [...SHA1_INSTEAD, [/%\[ssl_c_der,base64\]/, '%[ssl_c_sha1,hex,lower]']] as const;
  await checkSha1Alone(site, reloading(await startHaproxy(t, site, sha1Alone)));
});
