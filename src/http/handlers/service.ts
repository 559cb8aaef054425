// The routes of the service itself: index, health, challenges, the command-line client, and the audit log.

import { type Config, VERSION } from '../../config/settings.ts';
import { ANONYMOUS, type Tier } from '../../core/callers.ts';
import { andThen, type Awaitable, DAY_SECONDS, isoSeconds, onceForEach, unixSeconds } from '../../core/time.ts';
import { maxPasteBytes, type PastePurpose, rateMaxFor, ttlSeconds } from '../../pastes/admission.ts';
import { requireAdmin } from '../../pastes/identity.ts';
import type { Parts } from '../../pastes/parts.ts';
import { neededToCreate } from '../../pastes/pastes.ts';
import { jsonReply, type Reply, textReply } from '../engine/reply.ts';
import type { Request } from '../engine/request.ts';
import { page, single, timeBounds } from '../input.ts';
import {
  addressedScript, challengeLine, clientDownload, INVITATION_NEEDED, presentAuditEntry, presentChallenge,
  readClientScript, registerCommand,
} from '../present.ts';
import { type Handlers, routesOf } from '../routes.ts';

/** The admin has the limits of a trusted caller. */
const TIERS_SHOWN = ['anonymous', 'untrusted', 'trusted'] as const satisfies readonly Tier[];

const CLIENT_HEADERS = {
  'Content-Type': 'text/x-shellscript; charset=utf-8',
  'Content-Disposition': 'inline; filename="pastec"',
};

/** `whyClosed` says why nobody can register; undefined when callers can. */
export function serviceHandlers(parts: Parts, whyClosed: () => Promise<string | undefined>, isStopping: () => boolean) {
  const script = readClientScript();
  return {
    index: async (request) => {
      const value = index(parts, await whyClosed(), request.publicUrl);
      if (!request.prefersHtml) return { ...jsonReply(200, value), isNegotiated: true };
      const { frontPage, PAGE_HEADERS, pageText } = await import('../page.ts');
      return { status: 200, headers: PAGE_HEADERS, body: pageText(frontPage(value)) };
    },
    // A proxy that asks while the service stops must send its clients elsewhere.
    health: async () => (!isStopping() && await parts.store.healthy()
      ? jsonReply(200, { status: 'healthy', database: 'ok' })
      : jsonReply(503, { error: 'health check failed', status: 'unhealthy', database: 'error' })),
    getChallenge: (request) => getChallenge(parts, request),
    getClient: ({ publicUrl }) => ({ status: 200, headers: CLIENT_HEADERS, body: addressedScript(script, publicUrl) }),
    securityText: (request) => securityText(parts, request),
    listAudit: (request) => listAudit(parts, request),
  } satisfies Partial<Handlers>;
}

export type ServiceIndex = ReturnType<typeof index>;

const tablesOf = onceForEach((config: Config) => {
  const isOffered = (path: string): boolean => config.pkiEnabled || !/^\/pki(?:\/|$)/.test(path);
  const offered = routesOf(config).filter((route) => !('isForm' in route) && isOffered(route.path));
  return {
    endpoints: Object.fromEntries(offered.map((route) => [`${route.method} ${route.path}`, route.summary])),
    tiers: Object.fromEntries(TIERS_SHOWN.map((tier) => [tier, tierLimits(config, tier)])),
  };
});

function index(parts: Parts, unavailable: string | undefined, publicUrl: string) {
  const { config } = parts;
  const { endpoints, tiers } = tablesOf(config);
  const work = proofOfWork(parts);
  const registration = registrationTerms(config, unavailable);
  return {
    version: VERSION,
    endpoints,
    // By the work that is asked of those who may store here at all.
    usage: usage(publicUrl, ((config.createBy === 'trusted' && work.trusted) || work.paste).enabled, config),
    client: clientLines(publicUrl, registration),
    tiers,
    proof_of_work: work,
    // JSON leaves out those that are undefined.
    creation: neededToCreate(config), registration, contact: config.contact || undefined,
    note: 'Whoever knows the id of a paste can read it. Text is text/plain, whatever the request calls it.',
  };
}

/** Undefined where everyone who does the work is registered. */
function registrationTerms({ registerBy }: Config, unavailable: string | undefined) {
  if (unavailable !== undefined) return { available: false, hint: unavailable };
  if (registerBy === 'open') return undefined;
  return { available: true, invitation_required: true, hint: INVITATION_NEEDED };
}

/** Bytes, seconds, requests in a window of seconds; null means no limit. Flat, so that a shell can take it apart. */
function tierLimits(config: Config, tier: Tier) {
  const caller = { tier, fingerprint: null };
  return {
    max_size: maxPasteBytes(config, caller),
    default_expiry: ttlSeconds(config, caller, undefined), max_expiry: config.maxExpirySeconds,
    creations: rateMaxFor(config, caller, config.rateMax) || null, creations_window: config.rateWindowSeconds,
    lookups: rateMaxFor(config, caller, config.lookupRateMax) || null, lookups_window: config.lookupRateWindowSeconds,
  };
}

function proofOfWork({ config, challenges }: Parts) {
  const workFor = (purpose: PastePurpose) => {
    const [difficulty, base] = [challenges.difficultyBits(purpose), challenges.baseBits(purpose)];
    return { enabled: difficulty > 0, difficulty, base_difficulty: base, elevated: difficulty > base };
  };
  const registration = challenges.difficultyBits('register');
  return {
    paste: workFor('paste'),
    ...(config.powTrustedBits !== '' && { trusted: workFor('trusted') }),
    register: { enabled: registration > 0, difficulty: registration },
  };
}

/** Lines that work as printed, in this order, once FILE, ID and SECRET are replaced. Only the client can do work. */
function usage(url: string, asksForWork: boolean, config: Config): Record<string, string> {
  const { requireBinary, minBytes, minEntropyBits, minEntropyBytes, maxAnonBytes } = config;
  const isHelloTaken = minBytes <= 6 && (minEntropyBits === 0 || minEntropyBytes > 6);
  // Each of so many random bytes falls some 184 / bytes short of 8 bits of entropy: half of what it may fall short.
  const bytes = Math.max(minBytes, Math.floor(Math.min(maxAnonBytes / 2, Math.max(4096, 368 / (8 - minEntropyBits)))));
  const sample = isHelloTaken ? 'echo hello' : `head -c ${bytes} /dev/urandom`;
  return {
    ...(asksForWork ? {
      create: `${clientDownload(url)} && ${sample} | sh pastec${requireBinary ? ' --encrypt' : ''}`,
      create_file: 'sh pastec FILE',
      create_burn_after_read: 'sh pastec --burn FILE',
      create_with_password: "echo 'SECRET' | sh pastec --password-file - --expire 1h FILE",
    } : {
      create: `${sample} | ${requireBinary ? 'gzip | ' : ''}curl --data-binary @- ${url}/`,
      create_file: `curl --data-binary @FILE ${url}/`,
      create_burn_after_read: `curl -H 'X-Burn-After-Read: true' --data-binary @FILE ${url}/`,
      create_with_password: `curl -H 'X-Paste-Password: SECRET' -H 'X-Expiry: 3600' --data-binary @FILE ${url}/`,
    }),
    read: `curl ${url}/ID/raw`,
    read_with_password: `curl -H 'X-Paste-Password: SECRET' ${url}/ID/raw`,
    metadata: `curl ${url}/ID`,
  };
}

function clientLines(url: string, registration: ReturnType<typeof registrationTerms>): Record<string, string> {
  const register = registration === undefined ? registerCommand(url) : `${registerCommand(url)} --invite CODE`;
  return {
    download: clientDownload(url), create: 'sh pastec FILE', create_encrypted: 'sh pastec --encrypt FILE',
    read: 'sh pastec get ID', ...(registration?.available === false ? {} : { register }), help: 'sh pastec help',
  };
}

/** The caller is looked up only where trusted callers have challenges of their own. */
function getChallenge({ config, challenges, identity }: Parts, request: Request): Awaitable<Reply> {
  return andThen(config.powTrustedBits === '' ? ANONYMOUS : identity.callerOf(request.origin), (caller) => {
    const purpose = challenges.purposeFor(caller);
    const challenge = challenges.issue(purpose);
    if (request.prefersText) return textReply(200, challengeLine(challenge), { Vary: 'Accept' });
    return jsonReply(200, presentChallenge(challenge, challenges.baseBits(purpose)), { Vary: 'Accept' });
  });
}

/** RFC 9116 wants less than a year. */
const SECURITY_TEXT_DAYS = 180;

/** The text is the same all day. Canonical is for https alone (section 2.5.2). */
function securityText({ config: { contact }, clock }: Parts, { publicUrl, route }: Request): Reply {
  const today = Math.floor(unixSeconds(clock) / DAY_SECONDS);
  const lines = [`Contact: ${contact}`, `Expires: ${isoSeconds((today + SECURITY_TEXT_DAYS) * DAY_SECONDS)}`];
  if (publicUrl.startsWith('https:')) lines.push(`Canonical: ${publicUrl}${route}`);
  return textReply(200, lines.join('\n'));
}

async function listAudit({ identity, store }: Parts, request: Request): Promise<Reply> {
  requireAdmin(await identity.callerOf(request.origin));
  const { query } = request;
  const asked = page(query, { fallback: 100, maximum: 500 });
  const filter = {
    ...timeBounds(query), event: single(query, 'event'), outcome: single(query, 'outcome'),
    clientId: single(query, 'client_id')?.replaceAll(':', '').toLowerCase() ?? null,
  };
  const { items, total } = await store.read.listAudit(filter, asked);
  return jsonReply(200, { entries: items.map(presentAuditEntry), total, ...asked });
}
