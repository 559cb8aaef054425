// What `npm run release` hands out: the same bytes whoever makes it, and in them what is promised. Whether the Debian
// package can be installed: interop/debian-package.test.ts.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  chmodSync, cpSync, existsSync, lutimesSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join, sep } from 'node:path';
import test from 'node:test';
import { after, before } from 'node:test';
import { explainCommands } from '../../scripts/describe/help.ts';
import { showValue } from '../../src/operator/print.ts';
import { type Setting, SETTINGS, VERSION } from '../../src/config/settings.ts';
import { REFUSALS } from '../../src/core/refusals.ts';
import { ROUTES } from '../../src/http/routes.ts';
import { COMMANDS } from '../../src/operator/commands.ts';
import { isInstalled, run } from '../support/programs.ts';
import { copySource, makeRelease, tryRelease } from '../support/release.ts';
import { ROOT } from '../support/source.ts';

interface BillOfMaterials {
  readonly metadata: { readonly component: { readonly version: string; readonly components: readonly Listed[] } };
  readonly components: readonly Listed[];
}

interface Listed {
  readonly type: string;
  readonly name: string;
  readonly version?: string;
  readonly scope?: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

const folder = mkdtempSync(join(tmpdir(), 'pasted-release-'));
after(() => rmSync(folder, { recursive: true }));

const source = join(folder, 'one');
const made = join(folder, 'made');
const tarball = join(made, `pasted-${VERSION}.tar.gz`);
const deb = join(made, `pasted_${VERSION}_all.deb`);
const unpacked = join(folder, 'unpacked', `pasted-${VERSION}`);

before(() => {
  copySource(source);
  makeRelease(made, { source });
  mkdirSync(join(folder, 'unpacked'));
  assert.equal(run('tar', ['-xzf', tarball, '-C', join(folder, 'unpacked')], folder).output, '');
});

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** The files under `root`: their paths relative to it, with slashes, sorted. */
function pathsUnder(root: string): string[] {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return files.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1).split(sep).join('/')).sort();
}

/** What a program prints, by lines; it must succeed. */
function linesOf(program: string, ...args: readonly string[]): string[] {
  const { status, stdout, output } = run(program, args, folder);
  assert.equal(status, 0, output);
  return stdout.trimEnd().split('\n');
}

/** The package's files, in a folder. */
function installedTree(): string {
  const tree = join(folder, 'installed');
  if (!existsSync(tree)) assert.equal(run('dpkg-deb', ['-x', deb, tree], folder).status, 0);
  return tree;
}

test('release: another folder, time, umask, locale, order of files and environment make no difference', () => {
  const other = join(folder, 'ein anderer Ordner');
  // From the first copy, since someone may be editing the original.
  for (const path of pathsUnder(source).reverse()) {
    cpSync(join(source, path), join(other, path));
    lutimesSync(join(other, path), 1_700_000_000, 1_700_000_000 + path.length);
    chmodSync(join(other, path), 0o600);
  }
  const environment = {
    HOME: folder,
    LC_ALL: 'tr_TR.UTF-8',
    TZ: 'Pacific/Kiritimati',
    TAR_OPTIONS: '--exclude=README.md',
    DPKG_DEB_COMPRESSOR_TYPE: 'xz',
    SERVICE_PORT: '9000',
  };
  makeRelease(join(folder, 'made again'), { source: other, environment, umask: '077' });
  const again = pathsUnder(join(folder, 'made again'));
  assert.deepEqual(again, pathsUnder(made));
  assert.ok(again.length >= 3);
  assert.deepEqual(again.filter((path) => sha256(join(folder, 'made again', path)) !== sha256(join(made, path))), []);
});

test('release: SHA256SUMS lists every other file', (t) => {
  const sums = readFileSync(join(made, 'SHA256SUMS'), 'utf8');
  const names = sums.trimEnd().split('\n').map((line) => line.slice(66));
  assert.deepEqual([...names, 'SHA256SUMS'].sort(), pathsUnder(made));
  if (!isInstalled(t, 'sha256sum')) return;
  const { status, stdout } = run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], made);
  assert.deepEqual({ status, stdout }, { status: 0, stdout: names.map((name) => `${name}: OK\n`).join('') });
});

test('release: SOURCE_DATE_EPOCH is the time of everything, though it has not come yet', (t) => {
  const out = join(folder, 'dated');
  makeRelease(out, { source, environment: { SOURCE_DATE_EPOCH: '4102444800' } });
  const listed = linesOf('tar', '--full-time', '-tvzf', join(out, basename(tarball)));
  assert.deepEqual(listed.filter((line) => !/^-rw[x-]r-[x-]r-[x-] root.root .* 2100-01-01 00:00:00 /.test(line)), []);
  if (!isInstalled(t, 'dpkg-deb')) return;
  const contents = linesOf('dpkg-deb', '-c', join(out, basename(deb)));
  assert.deepEqual(contents.filter((line) => !/ root.root .* 2100-01-01 00:00 /.test(line)), []);
});

test('release: is dated by its heading in CHANGELOG.md, once that has a date', () => {
  const [dated, out] = [join(folder, 'released'), join(folder, 'made when released')];
  cpSync(source, dated, { recursive: true });
  const changelog = readFileSync(join(source, 'CHANGELOG.md'), 'utf8');
  writeFileSync(join(dated, 'CHANGELOG.md'), changelog.replace(/^## .*$/m, `## ${VERSION} (2030-01-02)`));
  makeRelease(out, { source: dated, environment: { TZ: 'Pacific/Kiritimati' } });
  const listed = linesOf('tar', '-tvzf', join(out, basename(tarball)));
  assert.deepEqual(listed.filter((line) => !line.includes(' 2030-01-02 00:00 ')), []);
});

test('release: what cannot be dated or does not fit together is refused, and leaves nothing behind', () => {
  const out = join(folder, 'refused');
  const badEpoch = tryRelease(out, { source, environment: { SOURCE_DATE_EPOCH: 'today' } });
  assert.deepEqual([badEpoch.status, badEpoch.stderr], [
    1, 'pasted: SOURCE_DATE_EPOCH: expected seconds since 1970\n',
  ]);
  const other = join(folder, 'other version');
  cpSync(source, other, { recursive: true });
  const card = readFileSync(join(source, 'package.json'), 'utf8');
  writeFileSync(join(other, 'package.json'), card.replace(`"version": "${VERSION}"`, '"version": "99.0.0"'));
  const badVersion = tryRelease(out, { source: other });
  assert.equal(badVersion.status, 1);
  assert.match(badVersion.stderr, /^pasted: CHANGELOG\.md begins with .* and package\.json says 99\.0\.0\n$/);
  assert.deepEqual(readdirSync(out), []);
});

test('release: without dpkg-deb it says so, and makes the rest', () => {
  const out = join(folder, 'without');
  const { stderr } = makeRelease(out, { source, environment: { PATH: '' } });
  assert.match(stderr, /no dpkg-deb/);
  assert.deepEqual(pathsUnder(out), ['SHA256SUMS', 'pastec', `pasted-${VERSION}.cdx.json`, basename(tarball)]);
  assert.equal(sha256(join(out, basename(tarball))), sha256(tarball));
});

test('tarball: says neither when it was compressed nor on which system (RFC 1952, 2.3)', () => {
  assert.equal(readFileSync(tarball).subarray(0, 10).toString('hex'), '1f8b08000000000002ff');
});

test('tarball: holds dist, which runs, and the files that go with it', () => {
  const dist = pathsUnder(join(unpacked, 'dist'));
  assert.equal(dist.length, pathsUnder(join(source, 'src')).length + 1);
  assert.deepEqual(linesOf(process.execPath, join(unpacked, 'dist', 'main.js'), 'version'), [`pasted ${VERSION}`]);
  const others = pathsUnder(unpacked).filter((path) => !/^(?:dist|deploy)\//.test(path));
  assert.deepEqual(others, [
    ...readdirSync(join(source, 'scripts', 'release', 'documents')),
    'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'completions/_pastec', 'completions/_pasted',
    'completions/pastec', 'completions/pastec.fish', 'completions/pasted', 'completions/pasted.fish', 'man/pastec.1',
    'man/pasted.1', 'openapi.json', 'package.json', 'sbom.cdx.json',
  ].sort());
  for (const name of ['CHANGELOG.md', 'LICENSE', 'SECURITY.md', 'package.json']) {
    assert.equal(sha256(join(unpacked, name)), sha256(join(source, name)), name);
  }
});

test('tarball: the picture of a page is a small PNG, which the README shows', () => {
  const picture = readFileSync(join(unpacked, 'page.png'));
  assert.ok(picture.length <= 120_000, `${picture.length} bytes`);
  assert.equal(picture.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  assert.equal(picture.subarray(12, 16).toString('latin1'), 'IHDR');
  assert.deepEqual([picture.readUInt32BE(16), picture.readUInt32BE(20)], [800, 560]);
  assert.deepEqual(picture, readFileSync(join(source, 'scripts', 'release', 'documents', 'page.png')));
  assert.equal(linksIn(unpacked).filter((target) => target === 'page.png').length, 1);
});

/** The relative links of a README. */
function linksIn(folderOfReadme: string): string[] {
  const text = readFileSync(join(folderOfReadme, 'README.md'), 'utf8');
  return [...text.matchAll(/\]\((?!#|\w+:)([^)#]+)/g)].map(([, target = '']) => target);
}

test('tarball and Debian package: every file that the README links to is there', (t) => {
  assert.ok(linksIn(unpacked).some((target) => target.startsWith('deploy/')));
  assert.deepEqual(linksIn(unpacked).filter((target) => !existsSync(join(unpacked, target))), []);
  if (!isInstalled(t, 'dpkg-deb')) return;
  const doc = join(installedTree(), 'usr/share/doc/pasted');
  assert.ok(linksIn(doc).some((target) => target.startsWith('../../pasted/examples/')));
  assert.deepEqual(linksIn(doc).filter((target) => !existsSync(join(doc, target))), []);
});

test('completions: are what each program prints for each shell', () => {
  const pasted = (shell: string) => run(process.execPath, [join(unpacked, 'dist', 'main.js'), 'completion', shell], folder);
  const pastec = (shell: string) => run(join(made, 'pastec'), ['completion', shell], folder);
  for (const [shell, name] of [['bash', ''], ['fish', '.fish'], ['zsh', '_']] as const) {
    for (const [program, { status, stdout }] of [['pasted', pasted(shell)], ['pastec', pastec(shell)]] as const) {
      assert.equal(status, 0);
      const file = name === '_' ? `_${program}` : `${program}${name}`;
      assert.match(stdout, /help/, file);
      assert.equal(readFileSync(join(unpacked, 'completions', file), 'utf8'), stdout, file);
    }
  }
});

test('pastec: is a program of this version, and what GET /client and the package have', (t) => {
  assert.deepEqual(linesOf(join(made, 'pastec'), '--version'), [`pastec ${VERSION}`]);
  assert.equal(sha256(join(made, 'pastec')), sha256(join(unpacked, 'dist/client/pastec')));
  if (!isInstalled(t, 'dpkg-deb')) return;
  assert.equal(sha256(join(made, 'pastec')), sha256(join(installedTree(), 'usr/bin/pastec')));
  assert.deepEqual(linesOf(join(installedTree(), 'usr/bin/pastec'), '--version'), [`pastec ${VERSION}`]);
});

test('pastec(1): has every command with its options, the exit codes and the files', () => {
  const page = readFileSync(join(unpacked, 'man', 'pastec.1'), 'utf8').replace(/\\f[BIR]|\\(?=-)/g, '');
  const help = linesOf(join(made, 'pastec'), 'help').join('\n');
  const commands = [...help.matchAll(/^ {2}pastec (\w+)/gm)].map(([, name = '']) => name);
  assert.ok(commands.length > 10);
  for (const name of [...commands, 'everywhere']) {
    const own = name === 'everywhere' ? help : linesOf(join(made, 'pastec'), 'help', name).join('\n').split('everywhere:')[0]!;
    const heading = name === 'everywhere' ? '.SH OPTIONS' : `.SS pastec ${name}`;
    const [, section = ''] = new RegExp(`^${heading}\\b.*\\n([^]*?)(?=^\\.S[HS] )`, 'm').exec(page) ?? assert.fail(heading);
    const options = [...own.matchAll(/^ {2}.{3} (--[\w-]+)/gm)].map(([, option]) => option);
    const shown = [...section.matchAll(/^\.TP\n(?:-\w(?: \w+)?, )?(--[\w-]+)/gm)].map(([, option]) => option);
    assert.deepEqual(shown, options, name);
  }
  for (const code of ['0', '9']) assert.match(page, new RegExp(`^\\.TP\\n${code}\\n\\w`, 'm'));
  assert.match(page, /^PASTEC_SOLVER: [^.]*\bbatches\b/m);
  assert.match(page, /reads it from\sstandard\sinput: pastec get - /);
  assert.match(page, /^Configuration: \\\(ti\/\.config\/pastec\/config/m);
});

function manual(): string {
  return readFileSync(join(unpacked, 'man', 'pasted.1'), 'utf8');
}

test('openapi.json: is what the command prints', () => {
  const { stdout } = run(process.execPath, [join(unpacked, 'dist', 'main.js'), 'openapi'], folder);
  assert.equal(readFileSync(join(unpacked, 'openapi.json'), 'utf8'), stdout);
});

/** What a section of the page lists, without markup: each name with the words about it, on one line. */
function tagged(page: string, section: string): (readonly [string, string])[] {
  const escapes: Readonly<Record<string, string>> = { e: '\\', '(aq': '\'', '(ga': '`', '(ha': '^', '(ti': '~', '(dq': '"' };
  const plain = page.replace(/\\f[BIR]|\\&/g, '').replace(/\\(-|e|\(..)/g, (_, name: string) => escapes[name] ?? name);
  const [, body = ''] = plain.split(/^\.SH /m).find((part) => part.startsWith(`${section}\n`))?.split(/\n([^]*)/) ?? [];
  return body.split(/^\.TP\n/m).slice(1).map((entry) => {
    const [tag = '', ...lines] = entry.trimEnd().split('\n');
    return [tag, lines.join(' ').replaceAll(' .br ', '; ')] as const;
  });
}

test('pasted(1): lists every setting with its meaning, stand-in, default and unit, in the order of the table', () => {
  assert.deepEqual(tagged(manual(), 'ENVIRONMENT'), Object.values<Setting>(SETTINGS).map((setting) => {
    const standIn = setting.standIn === undefined ? '' : ` ${setting.standIn} stands in.`;
    const fallback = `Default: ${showValue(setting, setting.fallback)} [${setting.unit}].`;
    return [setting.name, `${setting.meaning.replaceAll('`', '')}.${standIn}; ${fallback}`];
  }));
});

test('pasted(1): lists every endpoint, in the order of the table', () => {
  const expected = ROUTES.map(({ method, path, summary }) => [`${method} ${path}`, `${summary}.`]);
  assert.deepEqual(tagged(manual(), 'ENDPOINTS'), expected);
});

test('pasted(1): lists every refusal under its status, in the order of the table', () => {
  const listed = tagged(manual(), 'ERRORS').flatMap(([status, errors]) => {
    return errors.split('; ').map((error) => `${status} ${error}`);
  });
  const expected = Object.values(REFUSALS).map(({ status, error }) => `${status} ${error}`);
  const byStatus = expected.toSorted((one, other) => one.slice(0, 3).localeCompare(other.slice(0, 3)));
  assert.deepEqual(listed, byStatus);
});

test('pasted(1): explains every command and exit code, and the formatter has nothing to say against it', (t) => {
  const withoutMarkup = manual().replace(/\\f[BIR]|\\(?=-)/g, '');
  const help = readFileSync(join(unpacked, 'dist', 'operator', 'help.txt'), 'utf8');
  const letters = (text: string): string => text.replaceAll(/^\.PP$|\\\(..|\\./gm, '').replaceAll(/\W/g, '').toLowerCase();
  for (const { name, summary, description } of explainCommands(COMMANDS, help)) {
    const section = new RegExp(`^\\.SS pasted ${name}(?= |$).*\n([^]*?)(?=^\\.S[SH] )`, 'm').exec(withoutMarkup)?.[1] ?? '';
    assert.ok(letters(section).startsWith(letters(`${summary} ${description}`)), name);
  }
  assert.match(withoutMarkup, /^\.TP\n78\nthe settings or the database cannot be used/m);
  // The drop-ins that pastedctl heeds.
  const heeded = readFileSync(new URL('../../scripts/deploy/systemd/pastedctl', import.meta.url), 'utf8').match(/\w+\.conf(?=$|")/gm);
  assert.deepEqual([...new Set(heeded)], ['tls.conf']);
  assert.match(withoutMarkup.replaceAll('\n', ' '), /nor of drop-ins of the unit but tls\.conf\./);
  if (!isInstalled(t, 'groff')) return;
  for (const page of ['pasted.1', 'pastec.1']) {
    const { status, output } = run('groff', ['-man', '-ww', '-z', '-Tutf8', join(unpacked, 'man', page)], folder);
    assert.deepEqual({ status, output }, { status: 0, output: '' }, page);
  }
});

test('SBOM: lists the hash of every file that runs, and beside them only Node and development\'s packages', () => {
  const text = readFileSync(join(made, `pasted-${VERSION}.cdx.json`), 'utf8');
  assert.equal(readFileSync(join(unpacked, 'sbom.cdx.json'), 'utf8'), text);
  const { metadata, components } = JSON.parse(text) as BillOfMaterials;
  assert.equal(metadata.component.version, VERSION);
  assert.deepEqual(metadata.component.components, pathsUnder(join(unpacked, 'dist')).map((path) => ({
    type: 'file',
    name: `dist/${path}`,
    hashes: [{ alg: 'SHA-256', content: sha256(join(unpacked, 'dist', path)) }],
  })));
  const [node, ...others] = components;
  assert.deepEqual([node?.type, node?.name, node?.scope], ['platform', 'Node.js', 'required']);
  const { devDependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  assert.deepEqual(Object.fromEntries(others.map(({ name, version }) => [name, version])), devDependencies);
  for (const { name, scope, hashes } of others) {
    assert.equal(scope, 'excluded', name);
    assert.match(hashes?.[0]?.content ?? '', /^[0-9a-f]{128}$/, name);
  }
});

test('Debian package: each file is where Debian expects it, and as it is elsewhere', (t) => {
  if (!isInstalled(t, 'dpkg-deb')) return;
  const tree = installedTree();
  const paths = pathsUnder(tree);
  const at = (prefix: string): string[] => paths.filter((path) => path.startsWith(prefix));
  assert.deepEqual(at('usr/lib/pasted/').length, pathsUnder(join(unpacked, 'dist')).length);
  assert.deepEqual(at('usr/lib/systemd/system/').map((path) => basename(path)), pathsUnder(join(source, 'scripts',
    'deploy', 'systemd')).filter((path) => /^[^/]*\.(?:service|socket|timer)$/.test(path)));
  assert.deepEqual(at('etc/'), ['etc/pasted/pasted.env']);
  for (const [path, same] of [
    ['usr/lib/pasted/main.js', 'dist/main.js'],
    ...['pasted', 'pastec'].flatMap((name) => [
      [`usr/share/bash-completion/completions/${name}`, `completions/${name}`],
      [`usr/share/fish/vendor_completions.d/${name}.fish`, `completions/${name}.fish`],
      [`usr/share/zsh/vendor-completions/_${name}`, `completions/_${name}`],
    ] as const),
    ['usr/share/doc/pasted/openapi.json', 'openapi.json'],
    ['usr/share/doc/pasted/SECURITY.md', 'SECURITY.md'],
    ['usr/share/doc/pasted/RELIABILITY.md', 'RELIABILITY.md'],
    ['usr/share/doc/pasted/page.png', 'page.png'],
    ['usr/share/doc/pasted/sbom.cdx.json', 'sbom.cdx.json'],
    ['usr/share/pasted/examples/nginx.conf', 'deploy/nginx.conf'],
    ['usr/share/pasted/examples/systemd/tls.conf', 'deploy/systemd/tls.conf'],
    ['usr/share/pasted/examples/cluster/nodes.conf', 'deploy/cluster/nodes.conf'],
    ['usr/share/pasted/examples/cluster/rqlited.service', 'deploy/cluster/rqlited.service'],
    ['usr/sbin/pastedctl', 'deploy/systemd/pastedctl'],
  ] as const) assert.equal(sha256(join(tree, path)), sha256(join(unpacked, same)), path);
  // Shells look for the completions of a command in a file of its name.
  const bash = 'usr/share/bash-completion/completions';
  assert.equal(readFileSync(join(tree, bash, 'pastedctl'), 'utf8'), `. /${bash}/pasted\n`);
  const fish = 'usr/share/fish/vendor_completions.d';
  assert.equal(readFileSync(join(tree, fish, 'pastedctl.fish'), 'utf8'), `source /${fish}/pasted.fish\n`);
  const copyright = readFileSync(join(tree, 'usr/share/doc/pasted/copyright'), 'utf8');
  const licensed = copyright.replace(/^ \.?/gm, '');
  assert.ok(licensed.includes(readFileSync(join(source, 'LICENSE'), 'utf8').split('\n\n').slice(2).join('\n\n')));
  const pages = ['man1/pasted.1.gz', 'man1/pastec.1.gz', 'man8/pastedctl.8.gz'].map((name) => `../../man/${name}`);
  for (const name of ['changelog.gz', ...pages]) {
    assert.equal(run('gzip', ['--test', join(tree, 'usr/share/doc/pasted', name)], folder).output, '', name);
  }
  const log = run('gzip', ['-dc', join(tree, 'usr/share/doc/pasted/changelog.gz')], folder).stdout;
  assert.doesNotMatch(log, /##/);
  assert.ok(log.split('\n  * ').length > 200);
});

test('Debian package: asks for Node as package.json does, and belongs to root', (t) => {
  if (!isInstalled(t, 'dpkg-deb')) return;
  const field = (name: string): string => run('dpkg-deb', ['-f', deb, name], folder).stdout.trimEnd();
  // With an older systemd a credential cannot be a folder: the service would be installed and not start.
  assert.equal(field('Breaks'), 'systemd (<< 251)');
  assert.deepEqual(['Package', 'Version', 'Architecture', 'Depends'].map(field), [
    'pasted', VERSION, 'all', 'nodejs (>= 24) | pasted-runtime (>= 24)',
  ]);
  const special = linesOf('dpkg-deb', '-c', deb).filter((line) => {
    return !/^(?:drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) root.root /.test(line);
  });
  assert.deepEqual(special.map((line) => line.replace(/ .* /, ' ')), ['drwx------ ./etc/pasted/credentials/']);
});

test('Debian package: has the sum of every file but the one to be edited', (t) => {
  if (!isInstalled(t, 'dpkg-deb')) return;
  const control = join(folder, 'control');
  linesOf('dpkg-deb', '-e', deb, control);
  assert.equal(readFileSync(join(control, 'conffiles'), 'utf8'), '/etc/pasted/pasted.env\n');
  const summed = readFileSync(join(control, 'md5sums'), 'utf8').trimEnd().split('\n').map((line) => line.slice(34));
  assert.deepEqual([...summed, 'etc/pasted/pasted.env'].sort(), pathsUnder(installedTree()));
  const check = ['--check', '--strict', '--quiet', join(control, 'md5sums')];
  const { status, output } = run('md5sum', check, installedTree());
  assert.deepEqual({ status, output }, { status: 0, output: '' });
});

test('Debian package: /usr/bin/pasted runs Node as the units do', (t) => {
  if (!isInstalled(t, 'dpkg-deb')) return;
  const tree = installedTree();
  const wrapper = readFileSync(join(tree, 'usr/bin/pasted'), 'utf8').replaceAll('\\\n', ' ').replace(/ +/g, ' ');
  const [, command = ''] = /^exec "\$node" (.*) "\$@"$/m.exec(wrapper) ?? [];
  const [, runtime] = /^node=(.*)\n\[ -x "\$node" \] \|\| node=node$/m.exec(wrapper) ?? [];
  assert.match(command, / \/usr\/lib\/pasted\/main\.js$/);
  const units = join(tree, 'usr/lib/systemd/system');
  for (const name of ['pasted.service', 'pasted-tcp.service']) {
    const unit = readFileSync(join(units, name), 'utf8').replaceAll(/ *\\\n */g, ' ');
    const [, places] = /^ExecSearchPath=(.*)$/m.exec(unit) ?? [];
    const [, started = ''] = /^ExecStart=\/bin\/sh (.*) serve$/m.exec(unit) ?? [];
    assert.equal(`${places?.split(':')[0]}/node`, runtime, name);
    // The wrapper leaves out the permissions, which forbid fsync: a command makes files that must outlive a power cut.
    assert.ok(started.endsWith(` ${command}`) && started.includes(' --permission '), name);
  }
});

test('Debian package: shellcheck has nothing to say against its scripts', (t) => {
  if (!isInstalled(t, 'shellcheck')) return;
  const names = ['pasted', 'postinst', 'prerm', 'postrm', 'runtime/postinst'];
  const scripts = names.map((name) => join(source, 'scripts/deploy/debian', name));
  scripts.push(join(source, 'scripts/deploy/systemd/pastedctl'));
  const { status, output } = run('shellcheck', scripts, folder);
  assert.deepEqual({ status, output }, { status: 0, output: '' });
});

test('Debian package: pasted.env has every setting with its default, commented out, and no place for a secret', (t) => {
  if (!isInstalled(t, 'dpkg-deb')) return;
  const lines = readFileSync(join(installedTree(), 'etc/pasted/pasted.env'), 'utf8').split('\n');
  assert.deepEqual(lines.filter((line) => line !== '' && !line.startsWith('#')), []);
  const secrets = Object.values<Setting>(SETTINGS).filter(({ kind }) => kind === 'secret');
  const others = Object.values<Setting>(SETTINGS).filter(({ kind }) => kind !== 'secret');
  assert.deepEqual(lines.flatMap((line) => /^#(\w+)=/.exec(line)?.[1] ?? []), others.map(({ name }) => name));
  for (const { name } of secrets) assert.ok(lines.includes(`# A secret: /etc/pasted/credentials/${name}`), name);
  for (const line of ['#SERVICE_PORT=8080', '#URL_PREFIX=', '#SERVICE_DB=/var/lib/pasted/pasted.db']) {
    assert.ok(lines.includes(line), line);
  }
});

test('npm pack: takes dist/ and what npm always takes', (t) => {
  if (!isInstalled(t, 'npm')) return;
  // Without the fetched Node in PATH, as build.mjs does it: npm may be one that works on the host's own Node only.
  const fetched = join(ROOT, '.runtime');
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((entry) => !entry.startsWith(fetched));
  const environment = [`PATH=${path.join(delimiter)}`, `npm_config_cache=${join(folder, 'npm')}`];
  const args = [...environment, 'npm', 'pack', '--dry-run', '--json', '--offline', '--ignore-scripts'];
  const [{ files }] = JSON.parse(run('env', args, unpacked).stdout) as [{ files: { path: string }[] }];
  const others = files.map((file) => file.path).filter((name) => !name.startsWith('dist/'));
  assert.deepEqual(others.sort(), ['LICENSE', 'README.md', 'package.json']);
  assert.equal(files.length - others.length, pathsUnder(join(unpacked, 'dist')).length);
});
