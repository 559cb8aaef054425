// `pasted client`: the command-line client as GET /client hands it out, without asking a service for it.

import { addressedScript, readClientScript } from '../client/script.ts';
import { parseServiceUrl } from '../http/service-url.ts';
import type { Run } from './commands.ts';
import { EXIT, UsageError } from './failures.ts';

export const run: Run = ({ stdout }, { values }) => {
  const text = values.get('--server');
  const script = readClientScript();
  stdout.write(text === undefined ? script : addressedScript(script, serverUrl(text)));
  return EXIT.success;
};

function serverUrl(text: string): string {
  const parsed = parseServiceUrl(text);
  if (parsed !== undefined) return parsed.url;
  throw new UsageError(`--server takes an address such as https://paste.example/prefix: not ${JSON.stringify(text)}`);
}
