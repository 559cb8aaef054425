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

export function secretCommands(db: DatabaseSync): SecretCommands {
  const insert = db.prepare(`
    INSERT INTO secrets (name, value)
    VALUES (:name, :value)
    ON CONFLICT DO NOTHING`);
  const select = db.prepare('SELECT value FROM secrets WHERE name = :name');
  return {
    keepSecret({ name, value }) {
      insert.run({ name, value });
      return select.get({ name })?.['value'] as Uint8Array;
    },
  };
}
