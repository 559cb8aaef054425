// nginx and HAProxy as scripts/deploy has them, before a service of the campaign, on plain HTTP: test/interop tries
// what they do with client certificates.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { deployed, PROXY_SECRET } from '../support/proxy.ts';
import { installedPrograms, SEARCH_PATH } from './programs.ts';

export type ProxyName = 'nginx' | 'haproxy';

export const PROXY_NAMES: readonly ProxyName[] = ['nginx', 'haproxy'];

/** Settings that make the service trust what comes from them. */
export const BEHIND_PROXIES = { SERVICE_PROXY_SECRET: PROXY_SECRET };

export interface CampaignProxy {
  readonly name: ProxyName;
  readonly port: number;
  stop(): Promise<void>;
}

interface ProxyPlan {
  readonly command: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

/** The proxies that are installed. */
export function installedProxies(): ProxyName[] {
  const installed = installedPrograms(PROXY_NAMES);
  return PROXY_NAMES.filter((name) => installed.has(name));
}

/** Resolves when it takes connections. `folder` is its own, and must not exist. */
export async function startProxy(name: ProxyName, folder: string, servicePort: number): Promise<CampaignProxy> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const plan = name === 'nginx' ? nginxPlan(folder, port, servicePort) : haproxyPlan(folder, port, servicePort);
  for (const [file, text] of Object.entries(plan.files)) writeFileSync(join(folder, file), text);
  const [program = '', ...args] = plan.command;
  const child = spawn(program, args, {
    cwd: folder, env: { PATH: SEARCH_PATH, PASTED_PROXY_SECRET: PROXY_SECRET }, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(() => process.off('exit', killAtExit));
  while (!(await isTaken(port))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    name,
    port,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Makes nginx a single process, so that a kill is enough to end it. */
const ONE_PROCESS = 'daemon off; master_process off;';

function nginxPlan(folder: string, port: number, servicePort: number): ProxyPlan {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const temporary = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  const config = deployed('nginx.conf', [
    [/^user .*;$/m, ''],
    [/\/run\/nginx\.pid/, join(folder, 'nginx.pid')],
    [/error_log .* crit;/, 'error_log stderr crit;'],
    [/^http \{$/m, `http { ${temporary.join(' ')}`],
    [/\/etc\/pasted/g, folder],
    [/server 127\.0\.0\.1:8080;/, `server 127.0.0.1:${servicePort};`],
    [/\n {2}server \{\n {4}listen 443 ssl;[\s\S]*?\n {2}\}\n/, ''],
    [/listen \[::\]:.*;/g, ''],
    [/listen 80;/, `listen 127.0.0.1:${port};`],
  ]);
  return {
    command: ['nginx', '-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf'), '-g', ONE_PROCESS],
    files: { 'nginx.conf': config, 'proxy-secret.conf': `proxy_set_header X-Proxy-Secret "${PROXY_SECRET}";` },
  };
}

function haproxyPlan(folder: string, port: number, servicePort: number): ProxyPlan {
  const config = deployed('haproxy.cfg', [
    [/^ +(?:user|group|chroot) .*\n/gm, ''],
    [/log \/dev\/log local0/, 'log stderr format raw local0'],
    [/\/etc\/pasted/g, folder],
    [/server pasted 127\.0\.0\.1:8080/, `server pasted 127.0.0.1:${servicePort}`],
    [/^ +bind :::.*\n/gm, ''],
    [/^ +bind :443 .*\n/m, ''],
    [/bind :80$/m, `bind 127.0.0.1:${port}`],
  ]);
  return { command: ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')], files: { 'haproxy.cfg': config } };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

function isTaken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).then((isConnected) => {
    socket.destroy();
    return isConnected as boolean;
  });
}
