// Starts the service: its certificate, its store, and beside the opening of that, everything else. What it consists of
// is assembly.ts. This file loads little by itself: the store's writer thread has as much to load as all the rest, and
// both happen at once only if it begins first.

import type { App, AppParts, ListenerTls } from './assembly.ts';
import type { Config } from './config/settings.ts';
import { openStore } from './store/open.ts';

/**
 * Opens the store and puts everything together; nothing listens yet. Rejects when the database or the TLS certificate
 * is refused. What fails after the store is open closes it again.
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { clock, log } = parts;
  const listenerTls = config.tlsCertPath === '' ? undefined : await readTls(config, parts);
  const opening = openStore({ path: config.databasePath, clock, log });
  const [store, { assemble }] = await Promise.all([opening, import('./assembly.ts')]);
  try {
    return await assemble(config, parts, { store, listenerTls });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Only a listener that speaks TLS loads what that takes. */
async function readTls(config: Config, { clock, log }: AppParts): Promise<ListenerTls> {
  const { Tls } = await import('./http/tls.ts');
  const { readServerCertificate } = await import('./http/tls.ts');
  const readCertificate = () => readServerCertificate(config);
  return { tls: new Tls(readCertificate(), { clock, log }), readCertificate };
}
