// What the grammar of a single setting cannot say: settings that contradict each other, and settings that are valid but
// unwise in production or where others can reach the service. Does not parse.

import { SETTINGS, type Config, type SettingKey } from './settings.ts';

interface CrossCheck {
  /** The settings it looks at: when one of them is wrong by itself, there is nothing to compare. */
  readonly keys: readonly SettingKey[];
  /** The problem in words, undefined when there is none. Never says a secret. */
  readonly problem: (config: Config) => string | undefined;
}

/** Only combinations with which the service could not do its work. */
const CROSS_CHECKS: readonly CrossCheck[] = [
  sizeCheck('maxAnonBytes'),
  sizeCheck('maxAuthBytes'),
  {
    keys: ['proxySecret'],
    problem: ({ proxySecret }) => {
      // RFC 9110 section 5.5: a field value excludes the whitespace around it, so none could ever be equal.
      if (!/^ | $/.test(proxySecret)) return undefined;
      return `${SETTINGS.proxySecret.name}: expected a secret without spaces around it, since no header can carry them`;
    },
  },
  {
    keys: ['tlsCertPath', 'tlsKeyPath'],
    problem: ({ tlsCertPath, tlsKeyPath }) => {
      if ((tlsCertPath === '') === (tlsKeyPath === '')) return undefined;
      const [given, missing] = tlsCertPath === '' ? [SETTINGS.tlsKeyPath, SETTINGS.tlsCertPath] : [SETTINGS.tlsCertPath, SETTINGS.tlsKeyPath];
      return `${missing.name}: expected the path of a PEM file beside ${given.name}`;
    },
  },
];

function sizeCheck(key: 'maxAnonBytes' | 'maxAuthBytes'): CrossCheck {
  const smallest = SETTINGS.minBytes.name;
  return {
    keys: ['minBytes', key],
    problem: (config) => {
      if (config.minBytes <= config[key]) return undefined;
      return `${smallest}: expected at most ${SETTINGS[key].name} (${config[key]}), given ${config.minBytes}`;
    },
  };
}

/** The problems of a whole configuration; `unsound` are the keys whose values are not the ones given. */
export function crossCheck(config: Config, unsound: ReadonlySet<SettingKey>): string[] {
  return CROSS_CHECKS.filter(({ keys }) => !keys.some((key) => unsound.has(key)))
    .map(({ problem }) => problem(config))
    .filter((problem) => problem !== undefined);
}

export function isProduction(config: Config): boolean {
  return config.environment === 'production';
}

/** In production, or `isExposed`: listening where others than this host can connect. */
export function startWarnings(config: Config, isExposed: boolean): string[] {
  if (!isProduction(config) && !isExposed) return [];
  const warnings = identityWarnings(config);
  if (config.pkiEnabled && config.pkiCaPassword === '') {
    warnings.push(`${SETTINGS.pkiEnabled.name} is on without ${SETTINGS.pkiCaPassword.name}: nothing can be issued`);
  }
  return warnings;
}

/**
 * The start-up warnings of the contract (Authentication, 4): none with TLS of our own, where nobody is believed who has
 * not shown a certificate or the secret.
 */
function identityWarnings(config: Config): string[] {
  if (config.proxySecret !== '' || config.tlsCertPath !== '') return [];
  const name = SETTINGS.proxySecret.name;
  const warnings = [
    `${name} is not set: whoever reaches this port can present any certificate fingerprint in X-SSL-Client-SHA1`,
  ];
  if (config.pkiEnabled) {
    warnings.push(
      `${SETTINGS.pkiEnabled.name} is on without ${name}: the privileges of trusted certificates and of the admin ` +
        'are open to whoever knows a fingerprint',
    );
  }
  return warnings;
}
