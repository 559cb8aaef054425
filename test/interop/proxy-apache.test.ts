// scripts/deploy/apache.conf in a real Apache httpd, with real mutual TLS.

import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { writeFiles } from '../support/pki.ts';
import { isInstalled } from '../support/programs.ts';
import { checkProxy, checkWithoutHost } from '../support/proxy-checks.ts';
import { deployed, prepareSite, PROXY_SECRET, startProxy, type RunningProxy, type Site } from '../support/proxy.ts';

async function startApache(t: TestContext, { app, folder, httpPort, httpsPort }: Site): Promise<RunningProxy> {
  const config = deployed('apache.conf', [
    [/\/run\/apache2/g, folder],
    [/^ErrorLog .*$/m, 'ErrorLog "|/bin/cat"'],
    [/\/etc\/pasted/g, folder],
    [/127\.0\.0\.1:8080/g, `127.0.0.1:${app.port}`],
    [/^Listen 80$/m, `Listen 127.0.0.1:${httpPort}`],
    [/^Listen 443$/m, `Listen 127.0.0.1:${httpsPort}`],
    [/\*:80>/, `*:${httpPort}>`],
    [/\*:443>/, `*:${httpsPort}>`],
  ]);
  writeFiles(folder, {
    'apache.conf': config,
    'proxy-secret.conf': `RequestHeader set X-Proxy-Secret "${PROXY_SECRET}"`,
  });
  const command = ['apache2', '-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')];
  return startProxy(t, command, { isServing: /resuming normal operations/ });
}

test('Apache: as deployed, with client certificates of the service', async (t) => {
  for (const program of ['apache2', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t);
  const apache = await startApache(t, site);
  await t.test('HTTP/1.0 without a Host is answered', (step) => checkWithoutHost(step, site));
  await checkProxy(t, site, apache, () => apache.signal('SIGHUP', /resuming normal operations/));
});
