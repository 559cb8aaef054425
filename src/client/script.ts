// The command-line client as GET /client hands it out: the shell script beside this file with the server's address put
// in. What the script does is its own matter.

import { readFileSync } from 'node:fs';

/** The one place that is replaced; a test holds that the script has it exactly once. */
const PLACE = "server_default=''";

/** Nothing that ends a single-quoted string, or begins anything else, in any shell. */
const SAFE_URL = /^https?:\/\/[A-Za-z0-9.:_[\]-]+(?:\/[A-Za-z0-9._~-]+)*$/;

/** The script of this release. */
export function readClientScript(): string {
  return readFileSync(new URL('./pastec', import.meta.url), 'utf8');
}

/** The script with the server's address in it; as it is when the address is not safe to put between quotes. */
export function addressedScript(script: string, serverUrl: string): string {
  if (!SAFE_URL.test(serverUrl)) return script;
  const [before = '', after = ''] = script.split(PLACE);
  return `${before}${PLACE.slice(0, -1)}${serverUrl}'${after}`;
}
