// GET / and GET /health: what the service is and how to use it at this moment, and whether it works.

import { addressedScript, readClientScript } from '../../client/script.ts';
import type { Config } from '../../config/settings.ts';
import type { Tier } from '../../core/callers.ts';
import { type Challenges, maxPasteBytes, rateMaxFor, ttlSeconds } from '../../pastes/admission.ts';
import { requireAdmin } from '../../pastes/identity.ts';
import type { AuditStore, Store } from '../../store/open.ts';
import { VERSION } from '../../version.ts';
import { jsonReply, type Reply, textReply } from '../engine/reply.ts';
import { type CallerOf, clientDownload, page, registerCommand, single, timeBounds } from '../input.ts';
import { challengeLine, presentAuditEntry, presentPasteChallenge, presentUnavailable } from '../present.ts';
import { type Handlers, ROUTES } from '../routes.ts';

/** The admin has the limits of a trusted caller. */
const TIERS_SHOWN = ['anonymous', 'untrusted', 'trusted'] as const satisfies readonly Tier[];

const NOTE = 'Whoever knows the id of a paste can read it. Text is text/plain, whatever the request calls it.';

const PKI_PATH = /^\/pki(?:\/|$)/;

type Difficulties = Pick<Challenges, 'difficultyBits' | 'pasteBaseBits'>;

export function createServiceHandlers(parts: {
  config: Config;
  store: Store;
  challenges: Difficulties;
  /** Why nobody can register; undefined when one can. */
  whyUnavailable: () => string | undefined;
  isStopping: () => boolean;
}): Pick<Handlers, 'index' | 'health'> {
  const { config, store, challenges, whyUnavailable, isStopping } = parts;
  const offered = ROUTES.filter((route) => config.pkiEnabled || !PKI_PATH.test(route.path));
  const endpoints = Object.fromEntries(offered.map((route) => [`${route.method} ${route.path}`, route.summary]));
  const tiers = Object.fromEntries(TIERS_SHOWN.map((tier) => [tier, tierLimits(config, tier)]));

  return {
    index: ({ publicUrl }) => {
      const unavailable = whyUnavailable();
      return jsonReply(200, {
        version: VERSION,
        endpoints,
        usage: usage(publicUrl, challenges.difficultyBits('paste') > 0),
        client: clientLines(publicUrl, unavailable === undefined),
        tiers,
        proof_of_work: proofOfWork(challenges),
        ...(unavailable === undefined ? {} : { registration: presentUnavailable(unavailable) }),
        note: NOTE,
      });
    },
    // A proxy that asks while the service stops must send its clients elsewhere.
    health: async () => healthReply(!isStopping() && (await store.healthy())),
  };
}

/**
 * Bytes, seconds, and requests in a window of seconds; a rate that is switched off is null. Without objects in it, so
 * that a shell can take it apart.
 */
function tierLimits(config: Config, tier: Tier): object {
  const caller = { tier, fingerprint: null };
  return {
    max_size: maxPasteBytes(config, caller),
    default_expiry: ttlSeconds(config, caller, undefined),
    max_expiry: config.maxExpirySeconds,
    creations: rateMaxFor(config, caller, config.rateMax) || null,
    creations_window: config.rateWindowSeconds,
    lookups: rateMaxFor(config, caller, config.lookupRateMax) || null,
    lookups_window: config.lookupRateWindowSeconds,
  };
}

function proofOfWork(challenges: Difficulties): object {
  const paste = challenges.difficultyBits('paste');
  const registration = challenges.difficultyBits('register');
  const base = challenges.pasteBaseBits;
  return {
    paste: { enabled: paste > 0, difficulty: paste, base_difficulty: base, elevated: paste > base },
    register: { enabled: registration > 0, difficulty: registration },
  };
}

/** Lines that work as printed, in this order, once FILE, ID and SECRET are replaced. Only the client can do work. */
function usage(url: string, asksForWork: boolean): Record<string, string> {
  return {
    ...(asksForWork ? creationByClient(url) : creationByCurl(url)),
    read: `curl ${url}/ID/raw`,
    read_with_password: `curl -H 'X-Paste-Password: SECRET' ${url}/ID/raw`,
    metadata: `curl ${url}/ID`,
  };
}

function creationByCurl(url: string): Record<string, string> {
  return {
    create: `echo hello | curl --data-binary @- ${url}/`,
    create_file: `curl --data-binary @FILE ${url}/`,
    create_burn_after_read: `curl -H 'X-Burn-After-Read: true' --data-binary @FILE ${url}/`,
    create_with_password: `curl -H 'X-Paste-Password: SECRET' -H 'X-Expiry: 3600' --data-binary @FILE ${url}/`,
  };
}

function creationByClient(url: string): Record<string, string> {
  return {
    create: `${clientDownload(url)} && echo hello | sh pastec`,
    create_file: 'sh pastec FILE',
    create_burn_after_read: 'sh pastec --burn FILE',
    create_with_password: "echo 'SECRET' | sh pastec --password-file - --expire 1h FILE",
  };
}

function clientLines(url: string, canRegister: boolean): Record<string, string> {
  return {
    download: clientDownload(url),
    create: 'sh pastec FILE',
    create_encrypted: 'sh pastec --encrypt FILE',
    read: 'sh pastec get ID',
    ...(canRegister ? { register: registerCommand(url) } : {}),
    help: 'sh pastec help',
  };
}

function healthReply(isHealthy: boolean): Reply {
  if (isHealthy) return jsonReply(200, { status: 'healthy', database: 'ok' });
  return jsonReply(503, { error: 'health check failed', status: 'unhealthy', database: 'error' });
}

// GET /challenge: proof-of-work for a paste.

export function createChallengeHandlers(challenges: Challenges): Pick<Handlers, 'getChallenge'> {
  return {
    getChallenge: (request) => {
      const challenge = challenges.issue('paste');
      if (request.prefersText) return textReply(200, challengeLine(challenge), { Vary: 'Accept' });
      return jsonReply(200, presentPasteChallenge(challenge, challenges.pasteBaseBits), { Vary: 'Accept' });
    },
  };
}

// GET /client: the command-line client, knowing the server it came from.

export function createClientHandlers(): Pick<Handlers, 'getClient'> {
  const script = readClientScript();
  const headers = {
    'Content-Type': 'text/x-shellscript; charset=utf-8',
    'Content-Disposition': 'inline; filename="pastec"',
  };
  return {
    getClient: (request) => ({ status: 200, headers, body: addressedScript(script, request.publicUrl) }),
  };
}

// GET /audit: the audit log for the admin.

/** The contract's bound of one query. */
const PAGING = { fallback: 100, maximum: 500 };

export function createAuditHandlers(parts: { auditLog: AuditStore; callerOf: CallerOf }): Pick<Handlers, 'listAudit'> {
  const { auditLog, callerOf } = parts;
  return {
    listAudit: async (request) => {
      requireAdmin(await callerOf(request));
      const { query } = request;
      const asked = page(query, PAGING);
      const filter = {
        ...timeBounds(query),
        event: single(query, 'event'),
        outcome: single(query, 'outcome'),
        clientId: single(query, 'client_id'),
      };
      const { items, total } = await auditLog.list(filter, asked);
      return jsonReply(200, { entries: items.map(presentAuditEntry), total, ...asked });
    },
  };
}
