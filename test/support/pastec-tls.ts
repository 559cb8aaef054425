// pastec with a service that does TLS itself, where certificates count; and a PATH that lacks or replaces a program.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config } from '../../src/config/settings.ts';
import { clientOf, SH, type Client, type Shell } from './shells.ts';
import { serverPair, startTlsApp, type RunningTlsApp } from './tls.ts';

export interface TlsClient extends Client {
  /** The folder of the client's certificate for the server. */
  readonly identity: string;
  /** The value of a name in the file `facts` of that folder. */
  readonly fact: (name: string) => string | undefined;
}

export interface TlsService {
  readonly app: RunningTlsApp;
  /** A client that trusts the server. */
  readonly client: (shell?: Shell) => TlsClient;
}

/** Registering takes no work unless the overrides say so. */
export async function tlsService(t: TestContext, overrides: Partial<Config> = {}): Promise<TlsService> {
  const pair = await serverPair();
  const issuing = { pkiEnabled: true, pkiCaPassword: 'of the authority', registerPowDifficultyBits: 0, rateMax: 0 };
  const app = await startTlsApp(t, { ...issuing, ...overrides }, { pair });
  const client = (shell: Shell = SH): TlsClient => {
    const made = clientOf(t, app.url, shell);
    mkdirSync(join(made.home, '.config', 'pastec'), { recursive: true });
    writeFileSync(join(made.home, 'ca.pem'), pair.cert);
    writeFileSync(join(made.home, '.config', 'pastec', 'config'), `ca=${join(made.home, 'ca.pem')}\n`);
    const identity = join(made.home, '.local', 'share', 'pastec', 'certificates', `127.0.0.1_${app.port}`);
    const fact = (name: string): string | undefined =>
      new RegExp(`^${name}=(.*)$`, 'm').exec(readFileSync(join(identity, 'facts'), 'utf8'))?.[1];
    return { ...made, identity, fact };
  };
  return { app, client };
}

/** A PATH with every program of this host but one. */
export function pathWithout(program: string, folder: string): string {
  const programs = mkdtempSync(join(folder, 'programs-'));
  for (const place of (process.env['PATH'] ?? '').split(delimiter).filter((path) => existsSync(path))) {
    for (const name of readdirSync(place)) {
      // The first of a name counts, as on PATH.
      if (name !== program && !existsSync(join(programs, name))) symlinkSync(join(place, name), join(programs, name));
    }
  }
  return programs;
}

/** A PATH where lines of sh stand for a program; in them "$real" is the real one. */
export function pathReplacing(program: string, lines: string, folder: string): string {
  const programs = mkdtempSync(join(folder, 'programs-'));
  const places = (process.env['PATH'] ?? '').split(delimiter);
  const real = places.map((place) => join(place, program)).find((path) => existsSync(path));
  writeFileSync(join(programs, program), `#!/bin/sh\nreal='${real}'\n${lines}\n`);
  chmodSync(join(programs, program), 0o755);
  return `${programs}${delimiter}${process.env['PATH'] ?? ''}`;
}
