// The SQL of keys that the service made for itself, such as the one that signs challenges.

import type { DatabaseSync } from 'node:sqlite';

export interface KeptSecret {
  readonly name: string;
  readonly value: Uint8Array;
}

export interface SecretCommands {
  /** The value under that name: the one given, when there was none. */
  keepSecret(secret: KeptSecret): Uint8Array;
}

export interface SecretLookups {
  findSecret(name: string): Uint8Array | undefined;
}

export function secretCommands(db: DatabaseSync): SecretCommands {
  const insert = db.prepare(`
    INSERT INTO secrets (name, value)
    VALUES (:name, :value)
    ON CONFLICT DO NOTHING`);
  const { findSecret } = secretLookups(db);
  return {
    keepSecret({ name, value }) {
      insert.run({ name, value });
      return findSecret(name)!;
    },
  };
}

export function secretLookups(db: DatabaseSync): SecretLookups {
  const select = db.prepare('SELECT value FROM secrets WHERE name = :name');
  return { findSecret: (name) => select.get({ name })?.['value'] as Uint8Array | undefined };
}
