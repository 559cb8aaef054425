// The manual page pastec(1), from the tables of the script, the end of its help, and the sentences of pastec.md.

import { readFileSync } from 'node:fs';
import { ReleaseError } from './files.mjs';
import { bold, example, italic, lines, pageHead, paragraphs, tagged, text } from './roff.mjs';

const NOTES = readFileSync(new URL('pastec.md', import.meta.url), 'utf8').trimEnd().split('\n\n');

/** The page in roff, from the text of the script and what its `help` prints for someone whose home is ~. */
export function clientManualPage({ script, help, version, seconds }) {
  const options = tableIn(script, 'all_options').map(([takers, short, long, value, , meaning]) => {
    return { takers: takers.split(' '), names: short === '' ? [long] : [short, long], value, meaning };
  });
  const optionsOf = (taker) => options.filter(({ takers }) => takers.includes(taker)).flatMap(optionEntry);
  const [facts, exitCodes] = factsIn(help);
  return lines([
    ...pageHead('pastec', { version, seconds }),
    '.SH NAME',
    'pastec \\- the command line of a paste service',
    '.SH SYNOPSIS',
    `${bold('pastec')} [${italic('COMMAND')}] [${italic('OPTIONS')}] [${italic('OPERANDS')}]`,
    '.SH DESCRIPTION',
    `${bold('pastec')} stores files and what comes through a pipe in a paste service, and prints the URL.`,
    'Without a command, files or piped input are stored.',
    `It needs ${bold('curl')}(1), and ${bold('openssl')}(1) to encrypt and for certificates.`,
    ...example([
      'pastec --server https://paste.example note.txt',
      'date | pastec --expire 2h',
      'pastec get URL',
      'pastec --encrypt --burn secret.txt',
    ]),
    '.SH COMMANDS',
    ...tableIn(script, 'all_commands').flatMap(([name, operands, meaning]) => [
      `.SS ${bold(`pastec ${name}`)}${operands === '' ? '' : ` ${italic(operands)}`}`,
      text(`${meaning}.`),
      ...optionsOf(name),
    ]),
    '.SH OPTIONS',
    'Every command takes these.',
    ...optionsOf('all'),
    '.SH FILES AND ENVIRONMENT',
    ...paragraphs(facts),
    '.SH EXIT STATUS',
    ...exitCodes.flatMap(([code, meaning]) => tagged(bold(code), [text(`${meaning}.`)])),
    '.SH NOTES',
    ...paragraphs(NOTES),
    '.SH SEE ALSO',
    `${bold('pasted')}(1), ${bold('curl')}(1), ${bold('openssl')}(1)`,
  ]);
}

/** The lines between the quotes behind that name, each split into its fields. */
function tableIn(script, name) {
  const rows = new RegExp(`^ {2}${name}="\\\\\\n([^"]+)"$`, 'm').exec(script)?.[1];
  if (rows === undefined) throw new ReleaseError(`pastec: no ${name} found`);
  return rows.split('\n').map((row) => row.split('~'));
}

function optionEntry({ names, value, meaning }) {
  const forms = names.map((name) => (value === '' ? bold(name) : `${bold(name)} ${italic(value)}`));
  return tagged(forms.join(', '), [text(`${meaning}.`)]);
}

/** The facts below the options, a paragraph each (an indented line continues the one above), and the exit codes. */
function factsIn(help) {
  const [, below = '', codes] = /\n\n(The server is [^]*)\nExit codes: ([^]*)\n$/.exec(help) ?? [];
  if (codes === undefined) throw new ReleaseError('pastec help: no exit codes found');
  const facts = below.split(/\n(?! )| {4}/).map((fact) => fact.replace(/,\n +/g, ', ').replace(/\n +/g, '; '));
  return [facts, codes.split(/,\s+(?=\d)/).map((pair) => pair.split(/ (.*)/))];
}
