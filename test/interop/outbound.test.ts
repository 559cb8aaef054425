// The service connects to nothing and sends no packet, whatever it is asked: what strace(1) sees of the system calls that
// could, in all threads of the built service, while every route is visited.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startServing, temporaryFolder } from '../support/main-process.ts';
import { plantedBuild } from '../support/planted.ts';
import { isInstalled, run } from '../support/programs.ts';
import { takeTour, tourSettings } from '../support/tour.ts';

/** Answers to clients are written by write(2) and writev(2) to connections that were accepted. */
const OUTBOUND = 'connect,sendto,sendmsg,sendmmsg';

/** Undefined where the test is skipped. With -D the service is our child, and gets our signals. */
function tracing(t: TestContext, folder: string) {
  if (!isInstalled(t, 'strace')) return undefined;
  const file = join(folder, 'calls');
  const through = ['strace', '-D', '-f', '-qq', '-e', `trace=${OUTBOUND}`, '-e', 'signal=none', '-o', file] as const;
  const probe = run('strace', [...through.slice(2), 'true'], folder);
  if (probe.status !== 0) {
    t.skip(`strace may not trace: ${probe.output}`);
    return undefined;
  }
  const calls = () => readFileSync(file, 'utf8').split('\n').filter((line) => line !== '');
  return { through, calls };
}

test('strace: no connection and no packet leaves the service while every route is visited', async (t) => {
  const data = temporaryFolder(t);
  const tracer = tracing(t, data);
  if (tracer === undefined || !isInstalled(t, 'curl')) return;
  const settings = await tourSettings(t, data);
  const environment = { ...settings.environment, SERVICE_PKI_CA_PASSWORD: 'of the authority' };
  const main = await startServing(t, { through: [...tracer.through, process.execPath], environment });
  await takeTour(t, main, settings);
  main.child.kill('SIGTERM');
  assert.deepEqual([await main.ended, main.stderr()], [0, '']);
  assert.deepEqual(tracer.calls(), []);
});

/** A connection from the thread that serves and from another one, and a packet. Nobody is there to answer. */
const TALKATIVE = `
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
const ended = (emitter, ...events) => new Promise((resolve) => events.forEach((event) => emitter.once(event, resolve)));
export async function plant() {
  const socket = connect(1, '127.0.0.2');
  await ended(socket, 'error', 'connect');
  const code = "require('node:net').connect(1, '127.0.0.3').on('error', () => {})";
  await ended(new Worker(code, { eval: true }), 'exit');
  const packets = createSocket('udp4');
  await new Promise((resolve) => packets.send('x', 1, '127.0.0.4', resolve));
  packets.close();
  return {};
}
`;

test('strace: sees what code in the service sends, on any of its threads', async (t) => {
  const folder = temporaryFolder(t);
  const tracer = tracing(t, folder);
  if (tracer === undefined) return;
  const build = plantedBuild(folder, TALKATIVE);
  const main = await startServing(t, { through: [...tracer.through, process.execPath], build });
  assert.equal((await fetch(`${main.url}/health`)).status, 200);
  main.child.kill('SIGTERM');
  assert.equal(await main.ended, 0);
  const calls = tracer.calls().join('\n');
  for (const made of [/connect\(.*"127\.0\.0\.2"/, /connect\(.*"127\.0\.0\.3"/, /send(?:to|m?msg)\(.*"127\.0\.0\.4"/]) {
    assert.match(calls, made);
  }
});
