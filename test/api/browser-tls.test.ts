// Pages over HTTPS, as Chromium and Firefox show them, and what a browser does that has a certificate of the service.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { type Browser, BROWSERS, startBrowser } from '../support/real-browser.ts';
import { PKI } from '../support/pki.ts';
import { isInstalled } from '../support/programs.ts';
import { givePassword, PASSWORD, statusOf, textOf, UNICODE, unexpected, WITH_PASSWORD } from '../support/shown-pages.ts';
import { type RunningTlsApp, startTlsApp } from '../support/tls.ts';

async function stored(app: RunningTlsApp, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { status, json } = await app.ask('POST /', { body: Buffer.from(UNICODE), headers });
  assert.equal(status, 201);
  return String(json['id']);
}

for (const name of BROWSERS) {
  test(`${name}: a page over HTTPS, and a form`, async (t) => {
    const app = await startTlsApp(t, PKI);
    const browser = await startBrowser(t, name);
    if (browser === undefined) return;
    const tab = await browser.newTab();
    await tab.open(`${app.url}/${await stored(app)}`);
    assert.equal(await statusOf(tab), 200);
    assert.ok((await textOf(tab)).includes(UNICODE));
    await tab.open(`${app.url}/${await stored(app, WITH_PASSWORD)}`);
    await givePassword(tab, PASSWORD);
    assert.ok((await textOf(tab)).includes(UNICODE));
    // Without a certificate the browser is anonymous.
    await tab.open(`${app.url}/pastes`);
    assert.equal(await statusOf(tab), 401);
    assert.deepEqual(unexpected(tab), []);
  });
}

/** Registered as anyone would: the certificate and its key as the service hands them out. */
async function register(app: RunningTlsApp): Promise<{ bundle: Uint8Array; serial: string }> {
  const headers = { 'Content-Type': 'application/json' };
  const { status, body } = await app.ask('POST /register', { headers, body: '{"common_name": "alice"}' });
  assert.equal(status, 200);
  const [event] = app.logged.flatMap(({ details }) => (details?.['serial'] === undefined ? [] : [String(details['serial'])]));
  return { bundle: body, serial: event! };
}

// Chromium cannot be told without root to show a certificate unasked: test/support/chromium.ts.
test('firefox-esr: with a certificate of the service it is its holder, and no other site can act as that', async (t) => {
  if (!isInstalled(t, 'certutil') || !isInstalled(t, 'pk12util')) return;
  const app = await startTlsApp(t, { ...PKI, lookupRateMax: 1, rateTrustedFactor: 3 });
  const { bundle, serial } = await register(app);
  const browser = await startBrowser(t, 'firefox-esr', { bundle });
  if (browser === undefined) return;
  const place = `${app.url}/${await stored(app)}`;
  const tab = await browser.newTab();
  // Its holder may make three lookups, anyone else one.
  for (let turn = 0; turn < 2; turn += 1) {
    await tab.open(place);
    assert.equal(await statusOf(tab), 200);
    assert.ok((await textOf(tab)).includes(UNICODE));
  }
  await postFromElsewhere(t, browser, `${app.url}/pki/revoke/${serial}`);
  await tab.open(place);
  assert.equal(await statusOf(tab), 200, 'the certificate is valid still');
  // A page of the service itself could revoke it.
  const own = `Object.assign(document.createElement('form'), { method: 'post', action: '/pki/revoke/${serial}' })`;
  await tab.follow(() => tab.evaluate(`document.body.appendChild(${own}).submit()`));
  assert.match(await textOf(tab), /certificate revoked/);
  await tab.open(place);
  assert.equal(await statusOf(tab), 429);
  assert.deepEqual(unexpected(tab), []);
});

/** Posts by a form on a page that another server serves. */
async function postFromElsewhere(t: TestContext, browser: Browser, action: string): Promise<void> {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<!DOCTYPE html><title>x</title><form method="post" action="${action}"><button>Win</button></form>`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close(() => {}).closeAllConnections());
  const tab = await browser.newTab();
  await tab.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await tab.follow(() => tab.click('button'));
  assert.equal(await statusOf(tab), 403);
  assert.match(await textOf(tab), /cross-site request refused/);
}
