// The command-line client as GET /client hands it out: the shell script pastec with the server's address put in.

import { readFileSync } from 'node:fs';

/** What is replaced; a test holds that the script has it exactly once. */
const PLACE = "server_default=''";

/** Without anything that ends a single-quoted string in any shell. */
const SAFE_URL = /^https?:\/\/[A-Za-z0-9.:_[\]-]+(?:\/[A-Za-z0-9._~-]+)*$/;

export function readClientScript(): string {
  return readFileSync(new URL('./pastec', import.meta.url), 'utf8');
}

/** The script as it is when the address is not safe between quotes. */
export function addressedScript(script: string, serverUrl: string): string {
  if (!SAFE_URL.test(serverUrl)) return script;
  const [before = '', after = ''] = script.split(PLACE);
  return `${before}${PLACE.slice(0, -1)}${serverUrl}'${after}`;
}
