// GET /register/challenge and POST /register: a client certificate for whoever has done the work.

import { UUID_BYTES, uuidFromHex } from '../../core/ids.ts';
import { Refusal } from '../../core/refusals.ts';
import type { RandomBytes } from '../../core/time.ts';
import type { BundleProfile } from '../../crypto/pkcs12.ts';
import type { Authorities } from '../../service/authority.ts';
import type { Challenges } from '../../service/challenges.ts';
import type { Registration } from '../../service/registration.ts';
import {
  type CallerOf, hintingClient, jsonBodyOf, type JsonObject, registerCommand, textMember, work,
} from '../input.ts';
import { challengeLine, presentChallenge, presentUnavailable } from '../present.ts';
import { type Handlers, jsonReply, textReply } from '../reply.ts';
import { commonNameOf } from './pki.ts';

const MAX_BUNDLE_PASSWORD_LENGTH = 1024;

export function createRegistrationHandlers(parts: {
  authorities: Pick<Authorities, 'checkKey' | 'whyUnavailable'>;
  challenges: Challenges;
  registration: Registration;
  callerOf: CallerOf;
  random: RandomBytes;
}): Pick<Handlers, 'registrationChallenge' | 'register'> {
  const { authorities, challenges, registration, callerOf, random } = parts;
  return {
    registrationChallenge: async (request) => {
      // Nobody is to work for a certificate that can't be had.
      await authorities.checkKey();
      const hint = authorities.whyUnavailable();
      const challenge = challenges.issue('register');
      const line = hint === undefined ? challengeLine(challenge) : `unavailable ${hint}`;
      if (request.prefersText) return textReply(200, line, { Vary: 'Accept' });
      const unavailable = hint === undefined ? {} : presentUnavailable(hint);
      return jsonReply(200, { ...presentChallenge(challenge), ...unavailable }, { Vary: 'Accept' });
    },
    register: async (request) => {
      const { fingerprint } = await callerOf(request);
      const spend = await registration.admit(work(request.headers)).catch((error: unknown) => {
        throw hintingClient(error, request.publicUrl, registerCommand(request.publicUrl));
      });
      const body = await jsonBodyOf(request);
      const registered = await registration.register({
        commonName: commonNameOf(body) ?? uuidFromHex(Buffer.from(random(UUID_BYTES)).toString('hex')),
        profile: bundleProfile(body),
        bundlePassword: bundlePassword(body),
        spend,
        requester: { fingerprint, clientAddress: request.clientAddress },
      });
      const headers = {
        'Content-Type': 'application/x-pkcs12',
        'Content-Disposition': 'attachment; filename="client.p12"',
        'X-Fingerprint-SHA1': registered.fingerprint,
        'X-Certificate-Expires': String(registered.expiresAt),
        'X-Is-Admin': registered.isAdmin ? '1' : '0',
      };
      return { status: 200, headers, body: registered.bundle };
    },
  };
}

function bundleProfile(body: JsonObject): BundleProfile {
  const profile = textMember(body, 'p12_profile', () => new Refusal('bundleProfileInvalid')) ?? 'modern';
  if (profile !== 'modern' && profile !== 'compat') throw new Refusal('bundleProfileInvalid');
  return profile;
}

/** Empty when none is asked for. PKCS#12 has no form for U+0000 in it, nor for half a character. */
function bundlePassword(body: JsonObject): string {
  const password = textMember(body, 'p12_password', () => new Refusal('bundlePasswordInvalid'));
  if (password === undefined) return '';
  const length = [...password].length;
  const isOfLength = length >= 1 && length <= MAX_BUNDLE_PASSWORD_LENGTH;
  const isUsable = isOfLength && password.isWellFormed() && !password.includes('\0');
  if (!isUsable) throw new Refusal('bundlePasswordInvalid');
  return password;
}
