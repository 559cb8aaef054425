// How to get the command-line client from this very server, in the words that curl users are shown. What the client is:
// client/script.ts.

import { Refusal } from '../core/refusals.ts';

/** One command line. The URL is a publicUrl, which has nothing in it that a shell would take for its own. */
export function clientDownload(publicUrl: string): string {
  return `curl -fsS ${publicUrl}/client -o pastec`;
}

/** The client refuses to register over http unless it is told to: the certificate would not count there. */
export function registerCommand(publicUrl: string): string {
  return publicUrl.startsWith('https:') ? 'sh pastec register' : 'sh pastec register --allow-http';
}

/**
 * What to throw in place of what was thrown: a refusal for want of work says how to have the client do it, by that
 * command. The hint stays one line without quotes, since shells take it out with sed.
 */
export function hintingClient(error: unknown, publicUrl: string, command: string): unknown {
  if (!(error instanceof Refusal && error.refusal === 'powRequired')) return error;
  const hint = `${error.fields['hint']}; or let the client do the work: ${clientDownload(publicUrl)} && ${command}`;
  return new Refusal('powRequired', { ...error.fields, hint }, error.terms);
}
