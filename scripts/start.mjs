// npm start [-- COMMAND...]: runs dist/main.js, made from src/ first when it is missing or older. No package is needed
// for that. It does not check types (npm run build does) and does not fetch a runtime (with-node.mjs does). With
// SERVICE_PERMISSION=1 it serves under node --permission, as the systemd units do.

import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endLike, run, say } from './child.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const main = join(dist, 'main.js');

const compiled = await run(process.execPath, [
  '--disable-warning=ExperimentalWarning',
  join(root, 'scripts', 'compile.mjs'),
]);
if (compiled.received !== null) endLike({ code: null, signal: compiled.received });
if (compiled.code !== 0) endLike(compiled);

// SERVICE_PERMISSION is no setting of the service, which would warn of an unknown name.
const { SERVICE_PERMISSION: wish = '', ...env } = process.env;
delete process.env.SERVICE_PERMISSION;
if (!['', '0', '1'].includes(wish)) {
  say('SERVICE_PERMISSION: expected 1 or 0');
  process.exit(78);
}

const words = process.argv.slice(2);
const serves = words.length === 0 || words.join(' ') === 'serve';
// The server replaces this process or runs in it, so that signals and the exit code are the server's own.
if (wish === '1' && serves) {
  const options = [...process.execArgv, ...await permissions()];
  process.execve(process.execPath, [process.execPath, ...options, main, ...words], env);
}
process.argv.splice(1, 1, main);
await import(pathToFileURL(main).href);

// Node's options that permit the files that the settings name, and the folders in which the service makes files. None
// when the settings cannot be used: the service itself reports that.
async function permissions() {
  const load = await import(pathToFileURL(join(dist, 'config', 'load.js')).href);
  const { SETTINGS } = await import(pathToFileURL(join(dist, 'config', 'settings.js')).href);
  let config;
  try {
    ({ config } = load.loadConfig(env, load.readSmallFile));
  } catch (error) {
    if (!(error instanceof load.ConfigError)) throw error;
    return [];
  }
  const sockets = [config.listenOn.replace(/^unix:/, ''), config.metricsListen].filter((path) => path.startsWith('/'));
  const written = [config.databasePath, ...sockets].map((path) => dirname(resolve(path)));
  const secretFiles = Object.values(SETTINGS).filter(({ kind }) => kind === 'secret').map(({ name }) => `${name}_FILE`);
  const secrets = secretFiles.map((name) => env[name]);
  const { tlsCertPath, tlsKeyPath, clusterCaPath } = config;
  const named = [tlsCertPath, tlsKeyPath, clusterCaPath, ...secrets, env.CREDENTIALS_DIRECTORY];
  const read = [dist, ...written, ...named.filter(Boolean).map((path) => resolve(path))];
  const wild = read.find((path) => path.includes('*'));
  if (wild !== undefined) {
    say(`SERVICE_PERMISSION: node would take the * in ${wild} for any name: use a path without one`);
    process.exit(78);
  }
  // Node takes a path that does not exist yet for a file, so the content of a folder is named too.
  const withContent = (path) => [path, `${path}/*`];
  return [
    '--permission', '--allow-worker', '--disable-warning=PERM0006',
    ...read.flatMap(withContent).map((path) => `--allow-fs-read=${path}`),
    ...written.flatMap(withContent).map((path) => `--allow-fs-write=${path}`),
    // Since Node 25 the network needs a permission too, which Node 24 does not know; none permits only listening.
    ...(process.allowedNodeEnvironmentFlags.has('--allow-net')
      ? ['--allow-net', '--disable-warning=ExperimentalWarning'] : []),
  ];
}
