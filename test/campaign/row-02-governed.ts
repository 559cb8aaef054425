// Row 2 for what is governed: renewals, the first use of one, registrations by invitation, deletions by token. None may
// be done in part, whichever call fails: a refused one leaves invitation and certificates as they were.

import { byToken, type KnownTokenPaste } from './governed-load.ts';
import { compilerObstacle } from './faults.ts';
import { invite, issuing, listing, newRequest, renewing } from './governed.ts';
import { inspectAsKilled } from './inspect.ts';
import type { Answer, Ask, Client } from './client.ts';
import {
  failEach, goalsOf, pasteTrial, UNITS_OF_EACH, type Bench, type Operations, type Trial,
} from './row-02-faults.ts';
import type { Row, Unit } from './row.ts';

const OPERATIONS: Operations = [
  ['renew', () => renewalTrial()],
  ['use first', () => firstUseTrial()],
  ['register by invitation', () => invitationTrial()],
  ['delete by token', (unit) => tokenTrial(unit)],
];

export const governedFaultRow: Row = {
  name: '2g',
  title: 'EIO, ENOSPC and short writes at every write, sync and truncation of what is governed',
  target: '500 points of renewals, first uses, invitations, delete tokens',
  units: UNITS_OF_EACH * OPERATIONS.length,
  goals: goalsOf(OPERATIONS),
  least: ['at a write', 'at a sync'],
  obstacle: compilerObstacle,
  run: (unit) => failEach(unit, OPERATIONS),
};

interface Certificate {
  readonly serial: string;
  readonly fingerprint: string;
}

function certificatesOf({ service, unit }: Bench): number {
  return inspectAsKilled(service, unit.folder).certificates.size;
}

async function issued(client: Client, request: Ask): Promise<Certificate> {
  const answer = await client.ask(request);
  if (answer?.status !== 201) throw new Error(`${request.path} was answered ${answer?.status} ${answer?.body}`);
  return certificateIn(answer);
}

function certificateIn({ body }: Answer): Certificate {
  const { serial, fingerprint_sha1: fingerprint } = JSON.parse(String(body)) as Record<string, string>;
  return { serial: String(serial), fingerprint: String(fingerprint) };
}

function renewalTrial(): Trial {
  let old = { serial: '', fingerprint: '' };
  let renewed: Certificate | undefined;
  let before = 0;
  return {
    prepare: async (bench) => {
      old = await issued(bench.client, issuing());
      before = certificatesOf(bench);
    },
    act: async ({ client }) => {
      const answer = await client.ask(renewing(old.fingerprint, newRequest()));
      if (answer === undefined || answer.status >= 300) return false;
      renewed = certificateIn(answer);
      return true;
    },
    judge: (_, { certificates }) => {
      if (certificates.get(old.serial)?.isRevoked !== false) return 'a kill now would leave what is in force revoked';
      const isThere = renewed === undefined || certificates.get(renewed.serial)?.isRevoked === false;
      const expected = before + (renewed === undefined ? 0 : 1);
      if (isThere && certificates.size === expected) return undefined;
      return `a kill now would leave ${certificates.size} certificates where ${expected} was said`;
    },
  };
}

/** The renewed certificate replaces the old one, which is revoked, or both stay; a read is answered either way. */
function firstUseTrial(): Trial {
  let old = { serial: '', fingerprint: '' };
  let renewed = old;
  let status: number | undefined;
  return {
    prepare: async (bench) => {
      old = await issued(bench.client, issuing());
      renewed = await issued(bench.client, renewing(old.fingerprint, newRequest()));
    },
    act: async ({ client }) => {
      status = (await client.ask(listing(renewed.fingerprint)))?.status;
      return status === 200;
    },
    judge: (_, { certificates }) => {
      if (status !== 200) return `whoever shows a renewed certificate was answered ${status}`;
      const [before, after] = [certificates.get(old.serial), certificates.get(renewed.serial)];
      if (after?.isRevoked === false && before?.isRevoked === !after.isUnused) return undefined;
      return `a kill now would leave ${JSON.stringify(before)} beside ${JSON.stringify(after)}`;
    },
  };
}

function invitationTrial(): Trial {
  const uses = 2;
  let invited = { id: 0, code: '' };
  let before = 0;
  let spent = 0;
  return {
    prepare: async (bench) => {
      invited = await invite(bench.service, uses);
      before = certificatesOf(bench);
    },
    act: async ({ client }) => {
      const answer = await client.ask(issuing({ 'X-Invite': invited.code }));
      spent = answer?.status === 201 ? 1 : 0;
      return spent === 1;
    },
    judge: (_, { certificates, usesLeft }) => {
      const [added, left] = [certificates.size - before, usesLeft.get(invited.id)];
      if (added === spent && left === uses - spent) return undefined;
      return `a kill now would leave ${added} certificates more and ${left} uses, where ${spent} was said`;
    },
  };
}

function tokenTrial(unit: Unit): Trial {
  const known = { token: '' } as KnownTokenPaste;
  return pasteTrial(unit, 'delete', 'small', (client) => byToken(client, known));
}
