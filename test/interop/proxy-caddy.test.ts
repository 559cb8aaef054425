// scripts/deploy/Caddyfile in a real Caddy, with real mutual TLS.

import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { writeFiles } from '../support/pki.ts';
import { isInstalled } from '../support/programs.ts';
import { checkProxy } from '../support/proxy-checks.ts';
import {
  deployed, prepareSite, PROXY_SECRET, SITE_NAME, startProxy, type RunningProxy, type Site,
} from '../support/proxy.ts';

async function startCaddy(t: TestContext, { app, folder, httpPort, httpsPort }: Site): Promise<RunningProxy> {
  const config = deployed('Caddyfile', [
    // Caddy asks no public CA for a certificate here, and sends nothing on from one port to another.
    [/admin off/, 'admin off\n\tauto_https off\n\tdefault_bind 127.0.0.1'],
    [/\/etc\/pasted/g, folder],
    [/to 127\.0\.0\.1:8080/, `to 127.0.0.1:${app.port}`],
    [/^http:\/\/paste\.example /m, `http://${SITE_NAME}:${httpPort} `],
    [/^paste\.example /m, `https://${SITE_NAME}:${httpsPort} `],
    [/^\s*tls \{/m, `  tls ${join(folder, 'server.crt')} ${join(folder, 'server.key')} {`],
  ]);
  writeFiles(folder, { Caddyfile: config });
  // Caddy keeps a copy of its configuration.
  const environment = { PASTED_PROXY_SECRET: PROXY_SECRET, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
  return startProxy(t, command, { isServing: /serving initial configuration/, environment });
}

test('Caddy: as deployed, with client certificates of the service', async (t) => {
  for (const program of ['caddy', 'openssl', 'curl']) if (!isInstalled(t, program)) return;
  const site = await prepareSite(t);
  const caddy = await startCaddy(t, site);
  await checkProxy(t, site, caddy);
});
