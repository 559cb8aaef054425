// What pastec takes from its configuration, and that nothing in it is passed over in silence: otherwise content could
// go to another server, or be stored for nobody.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startApp } from '../support/app.ts';
import { pathReplacing } from '../support/pastec-tls.ts';
import { isInstalled } from '../support/programs.ts';
import { clientOf, SH, SHELLS, type Client, type Shell } from '../support/shells.ts';

/** No server listens there. */
const NOBODY = 'http://127.0.0.1:9';
const OWNER = '0123456789abcdef0123456789abcdef01234567';

interface Configured extends Client {
  readonly file: string;
  readonly configure: (text: string) => void;
}

function configured(t: TestContext, url: string, shell: Shell = SH): Configured {
  const client = clientOf(t, url, shell);
  const file = join(client.home, '.config', 'pastec', 'config');
  mkdirSync(dirname(file), { recursive: true });
  return { ...client, file, configure: (text) => writeFileSync(file, text) };
}

/** Without a server from the environment, which comes before the configured one. */
const ELSEWHERE = { PASTEC_SERVER: '' };

test('pastec: the configuration may have blanks, comments, the line ends of Windows and no last line end', async (t) => {
  const app = await startApp(t);
  for (const shell of SHELLS) {
    await t.test(`under ${shell.name}`, async (shellTest) => {
      if (!isInstalled(shellTest, shell.program)) return;
      const { run, configure } = configured(shellTest, NOBODY, shell);
      configure(`# server=${NOBODY}\r\n\r\n \t server =\t${app.url}/ \r\nhistory = no\r\n\nexpire= 60`);
      const { code, text, stderr } = await run([], { input: 'x', environment: ELSEWHERE });
      assert.deepEqual([code, stderr], [0, '']);
      const { created_at, expires_at } = await (await fetch(text.trim())).json() as Record<string, number>;
      assert.equal(expires_at! - created_at!, 60);
      configure(`server\nserver=${app.url}\nservers=x\nhistory=perhaps`);
      const unknown = await run(['status'], { environment: ELSEWHERE });
      assert.equal(unknown.code, 0);
      assert.deepEqual(unknown.stderr.match(/(?<=config: ).*/g), ['server', 'servers=x', 'history=perhaps']);
    });
  }
});

test('pastec: a configuration that can not be read ends it, and is named', async (t) => {
  const app = await startApp(t);
  const { run, file } = configured(t, app.url);
  const places: readonly (() => void)[] = [
    () => mkdirSync(file),
    () => symlinkSync('nowhere', file),
    () => {
      writeFileSync(file, 'server=https://paste.example\n');
      chmodSync(file, 0);
    },
    () => chmodSync(dirname(file), 0),
  ];
  // Modes mean nothing to root.
  for (const place of process.getuid?.() === 0 ? places.slice(0, 2) : places) {
    place();
    const { code, text, stderr } = await run([], { input: 'x' });
    chmodSync(dirname(file), 0o700);
    rmSync(file, { recursive: true, force: true });
    assert.deepEqual([code, text], [2, '']);
    assert.equal(stderr, `pastec: can't read ${file}\n  it is the configuration, and may name the server\n`);
  }
  assert.deepEqual(app.logged.filter((entry) => entry.event === 'request'), []);
});

test('pastec: no program that fails keeps it from its configuration', async (t) => {
  const app = await startApp(t);
  const { run, home, configure } = configured(t, NOBODY);
  configure(`server=${app.url}\nfingerprint=${OWNER}\n`);
  for (const program of ['sed', 'cat', 'awk', 'grep']) {
    const environment = { PATH: pathReplacing(program, 'exit 1', home), ...ELSEWHERE };
    await run(['info', 'abcdef'], { environment });
  }
  assert.equal(app.logged.filter((entry) => entry.event === 'request').length, 4);
});

test('pastec: what is wrong in the configuration is said with the file that has it', async (t) => {
  const app = await startApp(t);
  const { run, file, configure } = configured(t, app.url);
  const wrong: readonly [line: string, error: string, hint: string][] = [
    [`server="${app.url}"`, `no server address: "${app.url}"`, `${file} names it as server`],
    ['server=ftp://paste.example', 'no server address: ftp://paste.example', `${file} names it as server`],
    ['timeout=x', 'the timeout is in whole seconds, not x', `${file} names it as timeout`],
    ['expire=bogus', 'no duration: bogus', `${file} names it as expire`],
    ['expire=0', 'no duration: 0', `${file} names it as expire`],
    [`server=${app.url}\nfingerprint=abc`, 'a fingerprint is 40 hex digits', `${file} names it as fingerprint`],
    [`fingerprint=${OWNER}`, `${file} has fingerprint= without the server= that may see it`, 'try: pastec help'],
  ];
  for (const [line, error, hint] of wrong) {
    configure(`${line}\n`);
    const { code, text, stderr } = await run([], { input: 'x' });
    assert.deepEqual([code, text, stderr], [2, '', `pastec: ${error}\n  ${hint}\n`]);
  }
  assert.deepEqual(app.logged.filter((entry) => entry.event === 'request'), []);
});

test('pastec: an option on the command line takes the place of what is wrong in the configuration', async (t) => {
  const app = await startApp(t);
  const { run, configure } = configured(t, app.url);
  configure(`timeout=x\nexpire=bogus\nfingerprint=${OWNER}\n`);
  const given = ['--timeout', '9', '-e', '1h', '--fingerprint', OWNER];
  const { code, stderr } = await run(given, { input: 'x' });
  assert.deepEqual([code, stderr], [0, '']);
});

test('pastec: an XDG folder with a relative path counts as not set', async (t) => {
  const app = await startApp(t);
  const { run, folder, home } = clientOf(t, app.url);
  const environment = { XDG_CONFIG_HOME: '.', XDG_DATA_HOME: 'data', XDG_STATE_HOME: 'state' };
  mkdirSync(join(folder, 'pastec'));
  writeFileSync(join(folder, 'pastec', 'config'), 'expire=nonsense\n');
  const { code, text, stderr } = await run([], { input: 'x', environment });
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal((await run(['rm', text.trim()])).code, 0, 'by the token in the place that it has without them');
  assert.deepEqual(readdirSync(folder), ['pastec']);
  assert.ok(existsSync(join(home, '.local', 'state', 'pastec', 'delete-tokens')));
});
