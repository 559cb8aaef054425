// GET /client over real sockets: the script as it is in the repository, with this server's address in it and nothing else of the
// request.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/config/settings.ts';
import { addressedScript, readClientScript } from '../../src/http/present.ts';
import { startApp } from '../support/app.ts';
import { head, onlyAnswer } from '../support/raw-http.ts';

const SCRIPT = readClientScript();

test('pastec: has the place of the server address once, and the version of this release', () => {
  assert.equal(SCRIPT.split("server_default=''").length, 2);
  assert.match(SCRIPT, new RegExp(`^ *version=${VERSION.replaceAll('.', '\\.')}$`, 'm'));
});

test('GET /client: the script with the address and the prefix of this server', async (t) => {
  const app = await startApp(t, { urlPrefix: '/paste' });
  const response = await app.request('/client');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/x-shellscript; charset=utf-8');
  assert.equal(response.headers.get('content-disposition'), 'inline; filename="pastec"');
  assert.equal(await response.text(), SCRIPT.replace("server_default=''", `server_default='${app.url}/paste'`));
});

test('addressedScript: an address that a shell could read otherwise is left out', () => {
  for (const url of ["http://x';id;'", 'http://$(id)', 'http://a b', 'http://a/`id`', 'ftp://a', 'http://a\nb', '']) {
    assert.equal(addressedScript(SCRIPT, url), SCRIPT, url);
  }
  for (const url of ['http://a', 'https://paste.example:8443/p/q', 'http://[::1]:8080', 'http://127.0.0.1']) {
    assert.equal(addressedScript(SCRIPT, url), SCRIPT.replace("server_default=''", `server_default='${url}'`), url);
  }
});

test('GET /client: a hostile Host reaches no line of the script', async (t) => {
  const app = await startApp(t);
  for (const host of ["x';id;'", 'x$(id)', 'x`id`', 'x"y', 'x y', '-o=x']) {
    const refused = await onlyAnswer(t, app.port, head('GET /client HTTP/1.1', `Host: ${host}`, 'Connection: close'));
    assert.deepEqual([refused.status, refused.body.includes(host)], [400, false], host);
    const forwarded = ['Host: ', `X-Forwarded-Host: ${host}`, 'Connection: close'];
    const answer = await onlyAnswer(t, app.port, head('GET /client HTTP/1.1', ...forwarded));
    assert.equal(answer.status, 200, host);
    assert.equal(answer.body.toString(), SCRIPT.replace("server_default=''", `server_default='${app.url}'`), host);
  }
});

test('GET /client: of several forwarded hosts and schemes the last counts, which the nearest proxy has added', async (t) => {
  const app = await startApp(t);
  for (const forwarded of [
    ['X-Forwarded-Host: elsewhere.example, paste.example', 'X-Forwarded-Proto: http, https'],
    ['X-Forwarded-Host: elsewhere.example', 'X-Forwarded-Host: paste.example', 'X-Forwarded-Proto: http', 'X-Forwarded-Proto: https'],
  ]) {
    const answer = await onlyAnswer(t, app.port, head('GET /client HTTP/1.1', ...forwarded, 'Connection: close'));
    assert.equal(answer.body.toString(), addressedScript(SCRIPT, 'https://paste.example'), forwarded.join());
  }
});
