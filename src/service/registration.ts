// POST /register: anyone who has done the work gets a certificate and its key in a PKCS#12 bundle; the authority is
// made when there is none. The bundle is made before the certificate is recorded, so that a failure costs the caller
// nothing.

import { Refusal } from '../core/refusals.ts';
import type { RandomBytes } from '../core/time.ts';
import { KdfQueueFull, type KdfThread } from '../crypto/pkcs12-kdf-thread.ts';
import { type BundleProfile, makeBundle } from '../crypto/pkcs12.ts';
import type { WorkQueue } from '../limits/work-queue.ts';
import type { SpentChallenge } from '../store/store.ts';
import type { Authorities } from './authority.ts';
import { type Certificates, type IssuedCertificate, newKey } from './certificates.ts';
import type { Challenges, Work } from './challenges.ts';
import type { Requester } from './identity.ts';
import { inTurn } from './passwords.ts';

export interface RegistrationRequest {
  readonly commonName: string;
  readonly profile: BundleProfile;
  /** Of the bundle; empty for none. */
  readonly bundlePassword: string;
  /** What admit gave. */
  readonly spend: SpentChallenge | null;
  readonly requester: Requester & { readonly clientAddress: string };
}

export interface Registered extends IssuedCertificate {
  /** PKCS#12 in DER. */
  readonly bundle: Uint8Array;
}

export interface Registration {
  /** Refuses while nothing can be issued, and work that does not hold; gives what is to be used up. */
  admit(work: Work): Promise<SpentChallenge | null>;
  register(request: RegistrationRequest): Promise<Registered>;
}

export function createRegistration(parts: {
  authorities: Authorities;
  certificates: Certificates;
  challenges: Challenges;
  /** For bundles without a password, which take a millisecond or two each. */
  kdf: KdfThread;
  /** For those with one, which take seconds: neither other registrations nor password checks wait for them. */
  slowKdf: KdfThread;
  slowQueue: WorkQueue;
  random: RandomBytes;
}): Registration {
  const { authorities, certificates, challenges, kdf, slowKdf, slowQueue, random } = parts;

  async function bundleOf(request: RegistrationRequest, keyed: Keyed): Promise<Uint8Array> {
    const { profile, bundlePassword, commonName, requester } = request;
    const isSlow = bundlePassword !== '';
    const { derive } = isSlow ? slowKdf : kdf;
    const make = (): Promise<Uint8Array> =>
      makeBundle({ profile, password: bundlePassword, friendlyName: commonName, ...keyed }, { random, derive });
    try {
      return await (isSlow ? inTurn(slowQueue, requester.clientAddress, make) : make());
    } catch (error) {
      if (error instanceof KdfQueueFull) throw new Refusal('passwordQueueFull', {}, { retryAfterSeconds: 1 });
      throw error;
    }
  }

  async function register(request: RegistrationRequest): Promise<Registered> {
    const { commonName, spend, requester } = request;
    const authority = await authorities.ensured(requester);
    const key = await newKey();
    let bundle = new Uint8Array();
    const before = async (certificate: Uint8Array): Promise<void> => {
      bundle = new Uint8Array(
        await bundleOf(request, { certificate, privateKey: key.privateKey, authority: authority.certificate }),
      );
    };
    const issued = await certificates.issue({ commonName, key, requester, spend, before }, authority);
    return { ...issued, bundle };
  }

  return {
    admit: async (work) => {
      await authorities.requireUsable();
      return challenges.require('register', work);
    },
    register,
  };
}

type Keyed = Pick<Parameters<typeof makeBundle>[0], 'certificate' | 'privateKey' | 'authority'>;
