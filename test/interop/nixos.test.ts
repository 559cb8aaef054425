// scripts/deploy/nixos as nix reads it (Debian package `nix-bin`), with stand-ins for what it uses of nixpkgs; and what
// it makes of a release, by the lines that nix would run. nixpkgs itself takes no part.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { type Setting, SETTINGS, VERSION } from '../../src/config/settings.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';
import { makeRelease } from '../support/release.ts';
import { ROOT } from '../support/source.ts';

const MODULE = join(ROOT, 'scripts', 'deploy', 'nixos', 'pasted.nix');

/** What NixOS would take from the module, and the lines that make the package; with stand-ins for nixpkgs. */
const EVALUATION = `
{ module, config }:
let
  lib = builtins // {
    mkEnableOption = description: { default = false; };
    mkOption = option: option;
    mkIf = condition: content: if condition then content else { };
    mapAttrsToList = map: attributes: builtins.attrValues (builtins.mapAttrs map attributes);
    concatStrings = builtins.concatStringsSep "";
    intersectLists = these: builtins.filter (one: builtins.elem one these);
    versionAtLeast = version: least: builtins.compareVersions version least >= 0;
    types = { path = null; package = null; str = null; int = null; oneOf = types: null; attrsOf = type: null; };
  };
  pkgs = {
    runCommand = name: environment: script: { inherit name script; };
    nodejs_24 = { outPath = "/store/node"; version = "24.1.0"; };
    coreutils = "/store/coreutils";
  };
  made = import module {
    inherit lib pkgs;
    config = {
      services.pasted = { enable = true; nodejs = pkgs.nodejs_24; settings = { }; } // config;
      environment.etc."pasted/pasted.env".source = "/store/pasted.env";
    };
  };
in
{
  inherit (made) config;
  defaults = builtins.mapAttrs (name: option: option.default or null)
    (removeAttrs made.options.services.pasted [ "nodejs" ]);
}
`;

interface Made {
  readonly config: {
    readonly assertions: readonly { readonly assertion: boolean; readonly message: string }[];
    readonly environment: { readonly etc: Readonly<Record<string, { readonly text: string }>> };
    readonly systemd: {
      readonly packages: readonly { readonly script: string }[];
      readonly services: Readonly<Record<string, {
        readonly wantedBy: readonly string[]; readonly path: readonly string[];
      }>>;
      readonly sockets: Readonly<Record<string, { readonly wantedBy: readonly string[] }>>;
    };
  };
  readonly defaults: Readonly<Record<string, unknown>>;
}

/** What the module says for `config`, in nix; undefined where the test is skipped. */
function evaluate(t: TestContext, config: string): Made | undefined {
  if (!isInstalled(t, 'nix-instantiate')) return undefined;
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'evaluation.nix'), EVALUATION);
  const places = ['STORE_DIR', 'STATE_DIR', 'CONF_DIR', 'LOCALSTATE_DIR'].map((name) => `NIX_${name}=${folder}/nix`);
  const args = ['--arg', 'module', MODULE, '--arg', 'config', config, join(folder, 'evaluation.nix')];
  const { status, stdout, output } = run('env', [
    ...places, `HOME=${folder}`, 'nix-instantiate', '--store', 'dummy://', '--eval', '--strict', '--json', ...args,
  ], folder);
  assert.equal(status, 0, output);
  return JSON.parse(stdout) as Made;
}

test('NixOS: settings go to the unit\'s file; secrets and an old Node are refused', (t) => {
  const settings = 'settings = { SERVICE_CONTACT = "mailto:a@b.example"; SERVICE_MIN_SIZE = 5; };';
  const made = evaluate(t, `{ release = "/r"; ${settings} }`);
  if (made === undefined) return;
  const { config } = made;
  const unit = readFileSync(join(ROOT, 'scripts/deploy/systemd/pasted.service'), 'utf8');
  const [, file = ''] = /^EnvironmentFile=-\/etc\/(.*)$/m.exec(unit) ?? [];
  assert.equal(config.environment.etc[file]?.text, 'SERVICE_CONTACT=mailto:a@b.example\nSERVICE_MIN_SIZE=5\n');
  assert.deepEqual(config.assertions.map(({ assertion }) => assertion), [true, true]);
  assert.deepEqual(made.defaults, { enable: false, release: null, settings: {} });
  for (const { name } of Object.values<Setting>(SETTINGS).filter(({ kind }) => kind === 'secret')) {
    const refused = evaluate(t, `{ release = "/r"; settings.${name} = "s"; }`)!.config.assertions;
    assert.deepEqual(refused.map(({ assertion }) => assertion), [true, false], name);
  }
  const [old] = evaluate(t, '{ release = "/r"; nodejs = { outPath = "/n"; version = "22.1.0"; }; }')!.config.assertions;
  assert.deepEqual([old?.assertion, old?.message], [
    false, 'services.pasted.nodejs: expected Node 24 or later, and not 22.1.0',
  ]);
  assert.deepEqual(evaluate(t, '{ enable = false; }')!.config, {});
});

test('NixOS: the units of a release are enabled as they say themselves, and run from the store', (t) => {
  if (!isInstalled(t, 'nix-instantiate')) return;
  const folder = temporaryFolder(t);
  makeRelease(folder);
  assert.equal(run('tar', ['-xzf', `pasted-${VERSION}.tar.gz`], folder).status, 0);
  mkdirSync(join(folder, 'node/bin'), { recursive: true });
  symlinkSync(process.execPath, join(folder, 'node/bin/node'));
  const node = `nodejs = { outPath = "${folder}/node"; version = "24.1.0"; };`;
  const { systemd } = evaluate(t, `{ release = "${folder}/pasted-${VERSION}"; ${node} }`)!.config;

  const out = join(folder, 'out');
  // Without --norc, bash takes a socket as its input for a remote login, where no other shell started it.
  const { status, output } = run('env', [`out=${out}`, 'bash', '--norc', '-euc', systemd.packages[0]!.script], folder);
  assert.deepEqual([status, output], [0, '']);
  for (const [name, { wantedBy }] of [
    ['pasted.socket', systemd.sockets['pasted']!], ['pasted.service', systemd.services['pasted']!],
  ] as const) {
    // NixOS has /bin/sh where others have it; the units may name no other file by such a path.
    const unit = readFileSync(join(out, 'lib/systemd/system', name), 'utf8').replace('=/bin/sh ', '=sh ');
    assert.deepEqual([`WantedBy=${wantedBy.join()}`], unit.match(/^WantedBy=.*$/m)?.slice(), name);
    const elsewhere = unit.split('\n').filter((line) => /^[A-Z]/.test(line) && /=\/(?:usr|bin)|\/usr\//.test(line));
    assert.deepEqual(elsewhere, [], name);
  }
  const unit = readFileSync(join(out, 'lib/systemd/system/pasted.service'), 'utf8').replaceAll(/ *\\\n */g, ' ');
  const [, place] = /^ExecSearchPath=(.*)$/m.exec(unit) ?? [];
  const [, script = '', words = ''] = /^ExecStart=\/bin\/sh -c '(.*)' pasted (.*) serve$/m.exec(unit) ?? [];
  // NixOS sets PATH, so systemd does not set it to the place in ExecSearchPath.
  assert.deepEqual(systemd.services['pasted']!.path.map((path) => `${path}/bin`), [place]);
  const shell = `PATH=${place}; ${script.replaceAll('$$', '$')}`;
  // With an empty environment, as a service has it: npm run coverage sets NODE_OPTIONS to a file that it may not read.
  const version = run('env', ['-i', '/bin/sh', '-c', shell, 'pasted', ...words.split(' '), 'version'], folder);
  assert.deepEqual([version.status, version.output], [0, `pasted ${VERSION}\n`]);
  assert.match(unit, /^ExecReload=\/store\/coreutils\/bin\/kill -HUP \$MAINPID$/m);

  const control = join(out, 'bin/pastedctl');
  assert.match(run(control, ['--help'], folder).stdout, /^Usage: pastedctl/);
  const commands = readFileSync(control, 'utf8');
  assert.match(commands, new RegExp(`^node=${folder}/node/bin/node$`, 'm'));
  assert.ok(commands.includes(` ${words.split(' ').at(-1)} "$@"`), commands);
  assert.ok(readdirSync(join(out, 'share/man/man1')).includes('pasted.1'));
});
