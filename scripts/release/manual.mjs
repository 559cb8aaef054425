// The manual page pasted(1), from the tables of commands, settings, endpoints and errors, and the sentences of
// chapters.md.

import { readFileSync } from 'node:fs';
import { bold, escaped, example, italic, lines, literal, pageHead, paragraphs, tagged, text } from './roff.mjs';

const CHAPTERS = readFileSync(new URL('chapters.md', import.meta.url), 'utf8').split(/^## /m).slice(1);

/** The page in roff. */
export function manualPage({ commands, settings, exitCodes, routes, refusals, version, seconds }) {
  return lines([
    ...pageHead('pasted', { version, seconds }),
    '.SH NAME',
    'pasted, pastedctl \\- a paste service for terminals',
    '.SH SYNOPSIS',
    `${bold('pasted')} [${italic('COMMAND')}] [${italic('OPTIONS')}]`,
    '.br',
    `${bold('pastedctl')} ${italic('COMMAND')} [${italic('OPTIONS')}]`,
    '.SH DESCRIPTION',
    `${bold('pasted')} stores text and binary pastes that are sent to it over HTTP, and returns them by id.`,
    'It keeps everything in one SQLite file.',
    'What it does follows from variables of the environment.',
    'Without a command it serves.',
    ...controlParagraphs(),
    '.SH COMMANDS',
    ...commands.flatMap(commandSection),
    '.SH EXIT STATUS',
    ...exitCodes.flatMap(([code, meaning]) => tagged(bold(code), [text(meaning)])),
    '.SH ENVIRONMENT',
    'A variable that is empty is not set.',
    'Bytes take KiB, MiB and GiB behind the number, seconds s, m, h and d, such as SERVICE_MAX_ANON=3MiB.',
    'Flags take 1, true, yes, on and 0, false, no, off.',
    text('A secret may be in a file that <NAME>_FILE names, or in $CREDENTIALS_DIRECTORY/<NAME>.'),
    ...settings.flatMap(settingEntry),
    '.SH ENDPOINTS',
    text('HEAD works wherever GET does, and OPTIONS names what a path takes. Parameters, bodies and answers are in ' +
      'openapi.json, which comes with the release and is printed by `pasted openapi`.'),
    ...routes.flatMap(({ method, path, summary }) => tagged(bold(`${method} ${path}`), [text(`${summary}.`)])),
    '.SH ERRORS',
    text('An error is JSON on one line: `error` first, then `hint` where it helps, then what belongs to the case, ' +
      'such as `max_size`. By status:'),
    ...[...Map.groupBy(refusals, ({ status }) => status)]
      .toSorted(([one], [other]) => one - other)
      .flatMap(([status, ofStatus]) => tagged(bold(`${status}`), errorLines(ofStatus))),
    ...CHAPTERS.flatMap(chapter),
    '.SH FILES',
    'As the Debian package has them:',
    ...tagged(italic('/etc/pasted/pasted.env'), ['Settings of the service, all but secrets.']),
    ...tagged(italic('/etc/pasted/credentials/'), ['Secrets of the service, each in a file of its name.']),
    ...tagged(italic('/var/lib/pasted/pasted.db'), ['Everything that was entrusted to the service.']),
    '.SH SEE ALSO',
    `${bold('pastec')}(1), ${bold('systemctl')}(1), ${bold('systemd.exec')}(5), ${bold('curl')}(1)`,
  ]);
}

/** They explain scripts/deploy/systemd/pastedctl. */
function controlParagraphs() {
  return [
    ...paragraphs([
      'Where systemd runs it, root gives commands by `pastedctl`: they run as the user of pasted.service, with ' +
      'its settings, its secrets and its database, whether or not it runs, and with nothing of the environment of ' +
      'whoever calls, nor of drop-ins of the unit but tls.conf. The exit status is that of the command. It needs D-Bus.',
      'Files that such a command names are read and written by that user, and written in /var/lib/pasted alone; ' +
      'each is named by its whole path. Standard input and output are those of the caller, who should use these: ' +
      'in that folder the user could have put a link in the place of any file.',
    ]),
    ...example([
      'pastedctl stats',
      '(umask 077; pastedctl backup - > FILE)',
      'pastedctl restore - < FILE',
      '(umask 077; pastedctl admin create --out - > FILE)',
    ]),
  ];
}

function commandSection({ name, operands, options, summary, description, examples }) {
  const required = options.filter(({ isRequired }) => isRequired);
  const usage = [
    bold('pasted'),
    bold(name),
    ...operands.map((operand) => (operand.isRequired ? italic(operand.name) : `[${italic(operand.name)}]`)),
    ...required.map(optionForm),
    ...(required.length < options.length ? [`[${italic('OPTIONS')}]`] : []),
  ];
  return [
    `.SS ${usage.join(' ')}`,
    text(`${summary[0].toUpperCase()}${summary.slice(1)}.`),
    '.PP',
    text(description),
    ...operands.filter(({ choices }) => choices !== undefined).flatMap(operandEntry),
    ...options.flatMap(optionEntry),
    '.PP',
    'Examples:',
    ...example(examples),
  ];
}

function operandEntry({ name, choices }) {
  return tagged(italic(name), [oneOf(choices)]);
}

function optionEntry(option) {
  const choices = option.choices === undefined ? [] : ['.br', oneOf(option.choices)];
  return tagged(optionForm(option), [text(`${option.meaning}.`), ...choices]);
}

function oneOf(choices) {
  return text(`One of: ${choices.join(', ')}.`);
}

function optionForm({ name, value }) {
  return value === undefined ? bold(name) : `${bold(name)} ${italic(value)}`;
}

function settingEntry({ name, unit, shownFallback, meaning, standIn }) {
  const more = standIn === undefined ? [] : [`${bold(standIn)} stands in.`];
  const fallback = `Default: ${escaped(shownFallback)} [${escaped(unit)}].`;
  return tagged(bold(name), [text(`${meaning}.`), ...more, '.br', fallback]);
}

/** Each on a line of its own. */
function errorLines(refusals) {
  return refusals.flatMap(({ error }, index) => (index === 0 ? [literal(error)] : ['.br', literal(error)]));
}

/** `words` are a title and paragraphs, with empty lines between. */
function chapter(words) {
  const [title, ...texts] = words.trimEnd().split('\n\n');
  return [`.SH ${title}`, ...paragraphs(texts)];
}
