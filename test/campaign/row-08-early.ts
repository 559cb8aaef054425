// Row 8: clients that upload more than is allowed, with a length, in chunks, or asking first. Each must see the 413
// that comes before its upload ends, and a client that asks first sends nothing.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { curl, installedClients, type EarlyClient, type Form, type Sighting } from './early-clients.ts';
import { BEHIND_PROXIES, installedProxies, PROXY_NAMES, startProxy } from './proxies.ts';
import type { Row, Unit } from './row.ts';
import type { Service } from './service.ts';

const MIB = 2 ** 20;
const TIMES = { quick: 1, full: 20 };

/** More than the buffers of both kernels hold together: an answer comes while the client still sends. */
const UPLOAD_BYTES = 8 * MIB;
const LIMITS = { SERVICE_MAX_ANON: String(MIB) };

const AT_ONCE = 4;

export const earlyRow: Row = {
  name: '8',
  title: 'uploads that are too large, by length, chunked and with Expect, from every kind of client',
  target: '100 of each kind and form',
  units: 5,
  least: ['a socket, length', 'a socket, chunked', 'a socket, expect'],
  async run(unit) {
    const content = Buffer.alloc(UPLOAD_BYTES, 'an upload that is too large. ');
    const file = join(unit.folder, 'upload');
    writeFileSync(file, content);
    const environment = { ...LIMITS, ...BEHIND_PROXIES };
    const plain = await unit.start({ folder: join(unit.folder, 'plain'), environment });
    const { clients, missing } = installedClients();
    const installed = installedProxies();
    const proxies = await Promise.all(installed.map((name) => startProxy(name, join(unit.folder, name), plain.port())));
    const absent = [...missing, ...PROXY_NAMES.filter((name) => !installed.includes(name))];
    for (const name of absent) unit.note(`${name} is not installed`);
    const secure = clients.some(({ tls }) => tls === true) ? await startSecure(unit) : undefined;

    const kinds = [
      ...clients.map((client) => {
        return { client, port: (client.tls === true ? secure : plain)?.port() ?? 0, asksItself: true };
      }),
      // nginx answers Expect by itself; HAProxy hands it on.
      ...proxies.map(({ name, port }) => ({
        client: { name, forms: ['length', 'chunked', 'expect'], upload: curl } satisfies EarlyClient,
        port,
        asksItself: name === 'haproxy',
      })),
    ];
    const jobs = kinds.flatMap((kind) => kind.client.forms.flatMap((form) => {
      return Array.from({ length: TIMES[unit.effort] }, () => ({ ...kind, form }));
    }));
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let job = jobs.shift(); job !== undefined && !unit.isHopeless(); job = jobs.shift()) {
        const folder = join(unit.folder, `client${jobs.length}`);
        mkdirSync(folder);
        await uploadOne(unit, job, { folder, file, content });
      }
    }));
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    for (const service of [plain, secure]) {
      if (service?.isAlive() === false) unit.lose('the process ended', service.output().slice(-2000));
    }
  },
};

async function uploadOne(
  unit: Unit,
  { client, form, port, asksItself }: { client: EarlyClient; form: Form; port: number; asksItself: boolean },
  upload: { folder: string; file: string; content: Buffer },
): Promise<void> {
  const what = `${client.name}, ${form}`;
  unit.count(what);
  let seen: Sighting;
  try {
    seen = await client.upload(form, { port, ...upload });
  } catch (error) {
    return unit.lose(`${what}: no answer`, causes(error));
  }
  const { status, body, sentBytes } = seen;
  const saysWhy = body === undefined || body.includes('"error":"paste too large"');
  if (status !== 413) unit.lose(`${what}: ${status}`, seen);
  else if (!saysWhy) unit.lose(`${what}: no reason`, seen);
  if (form === 'expect' && asksItself && sentBytes !== 0) unit.lose(`${what}: ${sentBytes} bytes were sent`, seen);
}

function causes(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} <- ${causes(error.cause)}`;
}

async function startSecure(unit: Unit): Promise<Service> {
  const folder = join(unit.folder, 'secure');
  mkdirSync(folder);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem'];
  const names = [
    '-subj', '/CN=paste.example', '-addext', 'subjectAltName=DNS:paste.example', '-days', '2', '-out', 'cert.pem',
  ];
  execFileSync('openssl', ['req', '-x509', ...key, ...names], { cwd: folder, stdio: 'ignore' });
  const files = { SERVICE_TLS_CERT: join(folder, 'cert.pem'), SERVICE_TLS_KEY: join(folder, 'key.pem') };
  return unit.start({ folder, environment: { ...LIMITS, ...files } });
}
