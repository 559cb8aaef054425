// GET /client: the command-line client, knowing the server it came from.

import { addressedScript, readClientScript } from '../../client/script.ts';
import type { Handlers } from '../handler.ts';

export function createClientHandlers(): Pick<Handlers, 'getClient'> {
  const script = readClientScript();
  const headers = {
    'Content-Type': 'text/x-shellscript; charset=utf-8',
    'Content-Disposition': 'inline; filename="pastec"',
  };
  return {
    getClient: (request) => ({ status: 200, headers, body: addressedScript(script, request.publicUrl) }),
  };
}
