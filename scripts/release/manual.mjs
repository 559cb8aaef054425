// The manual page pasted(1), in the macros of man(7): the tables of commands, settings, endpoints and errors, and what
// chapters.md explains in sentences. All markup is made here: what comes from elsewhere is text.

import { readFileSync } from 'node:fs';
import { wrapped } from './files.mjs';

const CHAPTERS = readFileSync(new URL('chapters.md', import.meta.url), 'utf8').split(/^## /m).slice(1);

/** The page in roff. */
export function manualPage({ commands, settings, exitCodes, routes, refusals, version, seconds }) {
  const date = new Date(seconds * 1000).toISOString().slice(0, 10);
  return lines([
    '.\\" Made by scripts/release.mjs from the tables of the service.',
    `.TH PASTED 1 ${date} "pasted ${version}" "User Commands"`,
    // Neither hyphens that would be taken for a part of a name, nor spaces to fill a line.
    '.nh',
    '.ad l',
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
    `${bold('systemctl')}(1), ${bold('systemd.exec')}(5), ${bold('curl')}(1)`,
  ]);
}

/** Of scripts/deploy/systemd/pastedctl. */
function controlParagraphs() {
  return [
    '.PP',
    text('Where systemd runs it, root gives commands by `pastedctl`: they run as the user of pasted.service, with ' +
      'its settings, its secrets and its database, whether or not it runs, and with nothing of the environment of ' +
      'whoever calls, nor of drop-ins of the unit. The exit status is that of the command. It needs D-Bus.'),
    '.PP',
    text('Files that such a command names are read and written by that user, and written in /var/lib/pasted alone; ' +
      'each is named by its whole path. Standard input and output are those of the caller, who should use these: ' +
      'in that folder the user could have put a link in the place of any file.'),
    '.PP',
    '.nf',
    '.RS',
    ...[
      'pastedctl stats',
      '(umask 077; pastedctl backup - > FILE)',
      'pastedctl restore - < FILE',
      '(umask 077; pastedctl admin create --out - > FILE)',
    ].map(literal),
    '.RE',
    '.fi',
  ];
}

function commandSection({ name, operands, options, description, examples }) {
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
    text(description),
    ...operands.filter(({ choices }) => choices !== undefined).flatMap(operandEntry),
    ...options.flatMap(optionEntry),
    '.PP',
    'Examples:',
    '.PP',
    '.nf',
    '.RS',
    ...examples.map(literal),
    '.RE',
    '.fi',
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

/** Its title, and paragraphs with empty lines between. */
function chapter(words) {
  const [title, ...paragraphs] = words.trimEnd().split('\n\n');
  return [`.SH ${title}`, ...paragraphs.flatMap((paragraph) => ['.PP', text(paragraph)])];
}

function tagged(tag, body) {
  return ['.TP', tag, ...body];
}

function bold(words) {
  return `\\fB${escaped(words)}\\fR`;
}

function italic(words) {
  return `\\fI${escaped(words)}\\fR`;
}

/** Running text, in which what is between backticks becomes bold. */
function text(words) {
  const parts = words.split('`');
  const marked = parts.map((part, index) => (index % 2 === 1 ? bold(part) : escaped(part))).join('');
  return wrapped(marked, 80).map(noRequest).join('\n');
}

/** One line, as it is. */
function literal(words) {
  return noRequest(escaped(words));
}

/** roff(7): a line that begins so would be a request to the formatter. An apostrophe is escaped already. */
function noRequest(line) {
  return line.startsWith('.') ? `\\&${line}` : line;
}

/** groff_char(7): these would be read as markup, or shown as other characters than those that can be typed. */
const ESCAPES = { '\\': '\\e', '-': '\\-', '\'': '\\(aq', '`': '\\(ga', '^': '\\(ha', '~': '\\(ti', '"': '\\(dq' };

function escaped(words) {
  return words.replace(/[\\\-'`^~"]/g, (character) => ESCAPES[character]);
}

function lines(texts) {
  return `${texts.join('\n')}\n`;
}
