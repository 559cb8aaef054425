// GET / and GET /health: what the service is, and whether it works.

import type { Config } from '../../config/settings.ts';
import type { Tier } from '../../core/tiers.ts';
import { maxPasteBytes, ttlSeconds } from '../../service/tier-limits.ts';
import type { Store } from '../../store/store.ts';
import { VERSION } from '../../version.ts';
import type { Handlers } from '../handler.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { Request } from '../request.ts';
import { ROUTES } from '../routes.ts';

const TIERS_SHOWN = ['anonymous', 'untrusted', 'trusted'] as const satisfies readonly Tier[];

export function createServiceHandlers(parts: {
  config: Config;
  store: Store;
  isStopping: () => boolean;
}): Pick<Handlers, 'index' | 'health'> {
  const { config, store, isStopping } = parts;
  const offered = ROUTES.filter((route) => config.pkiEnabled || !route.path.startsWith('/pki/'));
  const endpoints = Object.fromEntries(offered.map((route) => [`${route.method} ${route.path}`, route.summary]));
  const tiers = Object.fromEntries(TIERS_SHOWN.map((tier) => [tier, tierLimits(config, tier)]));

  return {
    index: (request) => jsonReply(200, {
      version: VERSION,
      endpoints,
      usage: usage(request),
      tiers,
      note: 'Text is stored as text/plain, whatever the request calls it; whoever knows the id of a paste can read it.',
    }),
    // A proxy that asks while the service stops must send its clients elsewhere.
    health: async () => healthReply(!isStopping() && (await store.healthy())),
  };
}

function tierLimits(config: Config, tier: Tier): object {
  const caller = { tier, fingerprint: null };
  return { max_size: maxPasteBytes(config, caller), default_expiry: ttlSeconds(config, caller, undefined), max_expiry: config.maxExpirySeconds };
}

/** Command lines that work as printed. */
function usage(request: Request): Record<string, string> {
  const url = request.publicUrl;
  return {
    create: `echo hello | curl --data-binary @- ${url}/`,
    create_file: `curl --data-binary @FILE ${url}/`,
    create_burn_after_read: `curl -H 'X-Burn-After-Read: true' --data-binary @FILE ${url}/`,
    create_with_password: `curl -H 'X-Paste-Password: SECRET' -H 'X-Expiry: 3600' --data-binary @FILE ${url}/`,
    read: `curl ${url}/ID/raw`,
    metadata: `curl ${url}/ID`,
  };
}

function healthReply(isHealthy: boolean): Reply {
  if (isHealthy) return jsonReply(200, { status: 'healthy', database: 'ok' });
  return jsonReply(503, { error: 'health check failed', status: 'unhealthy', database: 'error' });
}
