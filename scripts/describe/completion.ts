// Scripts that let a shell complete the words of `pasted` and `pastedctl`, made from the table of commands. First come
// the scripts of the shells; below them, the words that each place of a command line can have.

import { readFileSync } from 'node:fs';
import { COMMANDS as TABLE } from '../../src/operator/commands.ts';
import { explainCommands, type ExplainedCommand, type ExplainedOption } from './help.ts';

const HELP_URL = new URL('../../src/operator/help.txt', import.meta.url);

const COMMANDS = explainCommands(TABLE, readFileSync(HELP_URL, 'utf8'));

/** The scripts by the name of the shell. */
export function completionScripts(): Readonly<Record<string, string>> {
  return { bash: bashScript(), zsh: zshScript(), fish: fishScript() };
}

/**
 * For Bash 3.2 (macOS) and later: the script uses no associative arrays, and does without compopt where there is none.
 * Bash breaks `--option=value` into three words at the `=`.
 */
function bashScript(): string {
  return `# Completion of pasted for bash: put it where bash-completion looks, or source it.
_pasted() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$current" = = ]; then current=; elif [ "$previous" = = ]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    ${bashWords(firstWords())}
    return
  fi
  case $command in
${groupWords().map(({ group, words }) => `    ${group}) command="$command \${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then ${bashWords(words)}; return; fi ;;`).join('\n')}
  esac
  case "$command \${COMP_WORDS[3]}" in
    ${longNames().map(quoted).join(' | ')}) [ "$COMP_CWORD" -eq 3 ] || command="$command \${COMP_WORDS[3]}" ;;
  esac
  case "$command $previous" in
${valueOffers().map(({ pattern, option }) => `    ${pattern}) ${bashValues(option)}; return ;;`).join('\n')}
  esac
  if [ "$command" = help ]; then command="\${COMP_WORDS[*]:1:COMP_CWORD-1}"; fi
  case $command in
${commandOffers().map((offer) => `    ${quoted(offer.name)}) ${bashOperands(offer)} ;;`).join('\n')}
  esac
}
_pasted_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")
}
complete -F _pasted pasted pastedctl
`;
}

/** No word of the table has a space in it. */
function bashWords(words: readonly Word[]): string {
  return `COMPREPLY=($(compgen -W ${quoted(words.map(({ word }) => word).join(' '))} -- "$current"))`;
}

function bashValues({ files, words }: OptionOffer): string {
  if (files) return '_pasted_files';
  return words.length === 0 ? ':' : bashWords(words);
}

function bashOperands({ operands, options }: CommandOffer): string {
  const words = bashWords([...operands.words, ...options]);
  return operands.files ? `case $current in -*) ${words} ;; *) _pasted_files ;; esac` : words;
}

/** Patterns of a `case` over command and previous word: each option that takes a value. Free text offers nothing. */
function valueOffers(): { pattern: string; option: OptionOffer }[] {
  return commandOffers().flatMap(({ name, options }) => options
    .filter((option) => option.takesValue)
    .map((option) => ({ pattern: quoted(`${name} ${option.word}`), option })));
}

function zshScript(): string {
  return `#compdef pasted pastedctl
# Completion of pasted for zsh: put it as _pasted into a folder of $fpath.
_pasted() {
  local -a offered
  local command=$words[2] previous=$words[CURRENT-1]
  if (( CURRENT == 2 )); then
    offered=(${zshWords(firstWords())})
    _describe command offered
    return
  fi
  case $command in
${groupWords().map(({ group, words }) => `    ${group}) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=(${zshWords(words)}); _describe command offered; return; fi ;;`).join('\n')}
  esac
  case "$command $words[4]" in
    ${longNames().map(quoted).join(' | ')}) (( CURRENT == 4 )) || command="$command $words[4]" ;;
  esac
  case $words[CURRENT] in
    --*=*) previous=\${words[CURRENT]%%=*}; compset -P '*=' ;;
  esac
  case "$command $previous" in
${valueOffers().map(({ pattern, option }) => `    ${pattern}) ${zshValues(option)}; return ;;`).join('\n')}
  esac
  if [[ $command = help ]]; then command="\${(j: :)words[2,CURRENT-1]}"; fi
  case $command in
${commandOffers().map((offer) => `    ${quoted(offer.name)}) ${zshOperands(offer)} ;;`).join('\n')}
  esac
}
if [ "$funcstack[1]" = _pasted ]; then _pasted "$@"; else compdef _pasted pasted pastedctl; fi
`;
}

/** For _describe, which takes \`word:meaning\`. */
function zshWords(words: readonly Word[]): string {
  return words.map(({ word, meaning }) => quoted(meaning === '' ? word : `${word}:${meaning}`)).join(' ');
}

function zshValues({ files, words }: OptionOffer): string {
  if (files) return '_files';
  return words.length === 0 ? ':' : `offered=(${zshWords(words)}); _describe value offered`;
}

function zshOperands({ operands, options }: CommandOffer): string {
  const parts = [`offered=(${zshWords(options)}); _describe -o option offered`];
  if (operands.words.length > 0) parts.unshift(`offered=(${zshWords(operands.words)}); _describe argument offered`);
  if (operands.files) parts.unshift('_files');
  return parts.join('; ');
}

function fishScript(): string {
  const lines = [
    '# Completion of pasted for fish: put it as pasted.fish into ~/.config/fish/completions.',
    'complete -c pasted -f',
    'complete -c pastedctl -w pasted',
    ...firstWords().map((word) => fishWord('__fish_use_subcommand', word)),
    ...groupWords().flatMap(({ group, words }) => {
      const members = words.map(({ word }) => word).join(' ');
      const condition = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${members}`;
      return words.map((word) => fishWord(condition, word));
    }),
    // The lines above offer the words of a group after `help GROUP` too, so that needs no lines here.
    ...commandOffers().filter(({ name }) => !name.startsWith('help ')).flatMap(fishCommand),
  ];
  return `${lines.join('\n')}\n`;
}

function fishCommand({ name, options, operands }: CommandOffer): string[] {
  const seen = name.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
  return [
    ...options.map((option) => fishOption(seen, option)),
    ...operands.words.map((word) => fishWord(name === 'help' ? `${seen}; and not ${FIRST_SEEN}` : seen, word)),
    ...(operands.files ? [`complete -c pasted -n ${fishQuoted(seen)} -F`] : []),
  ];
}

const FIRST_SEEN = `__fish_seen_subcommand_from ${
  firstWords().map(({ word }) => word).filter((word) => word !== 'help').join(' ')
}`;

function fishWord(condition: string, { word, meaning }: Word): string {
  const described = meaning === '' ? '' : ` -d ${fishQuoted(meaning)}`;
  return `complete -c pasted -n ${fishQuoted(condition)} -a ${fishQuoted(word)}${described}`;
}

function fishOption(condition: string, { word, meaning, takesValue, files, words }: OptionOffer): string {
  const value = !takesValue ? '' : files ? ' -r -F' : ` -x${fishValues(words)}`;
  return `complete -c pasted -n ${fishQuoted(condition)} -l ${word.slice(2)}${value} -d ${fishQuoted(meaning)}`;
}

function fishValues(words: readonly Word[]): string {
  return words.length === 0 ? '' : ` -a ${fishQuoted(words.map(({ word }) => word).join(' '))}`;
}

/** Between single quotes, as bash and zsh read them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** In fish a backslash escapes between single quotes too. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

interface Word {
  readonly word: string;
  /** For people; may be empty. */
  readonly meaning: string;
}

/** What a value or an operand may be: one of `words`, a file, or, without either, free text. */
interface Values {
  readonly words: readonly Word[];
  readonly files: boolean;
}

interface OptionOffer extends Word, Values {
  readonly takesValue: boolean;
}

interface CommandOffer {
  /** As in the table. */
  readonly name: string;
  readonly options: readonly OptionOffer[];
  /** The values of all operands together, whichever operand comes next. */
  readonly operands: Values;
}

/** What follows `pasted`: commands of one word, and the first words of groups, in the table's order. */
function firstWords(): readonly Word[] {
  const words = new Map<string, string>();
  for (const { name, summary } of COMMANDS) {
    const [first = '', second] = name.split(' ');
    const members = groupWords().find(({ group }) => group === first)?.words ?? [];
    words.set(first, second === undefined ? summary : members.map(({ word }) => word).join(', '));
  }
  return [...words].map(([word, meaning]) => ({ word, meaning }));
}

/** What follows the first word of a group. */
function groupWords(): readonly { readonly group: string; readonly words: readonly Word[] }[] {
  const ofTwo = COMMANDS.filter(({ name }) => name.split(' ').length === 2);
  const groups = Map.groupBy(ofTwo, ({ name }) => name.split(' ')[0]!);
  return [...groups].map(([group, members]) => ({
    group,
    words: members.map(({ name, summary }) => ({ word: name.slice(group.length + 1), meaning: summary })),
  }));
}

/** Names of three words, of which the first two are a command as well. */
function longNames(): readonly string[] {
  return COMMANDS.map(({ name }) => name).filter((name) => name.split(' ').length === 3);
}

/** The words that make longer command names out of `words`. */
function wordsBehind(words: string): readonly Word[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${words} `))
    .map(({ name, summary }) => ({ word: name.slice(words.length + 1), meaning: summary }));
}

function commandOffers(): readonly CommandOffer[] {
  const offers = COMMANDS.map((command) => ({
    name: command.name,
    options: [...command.options.map(optionOffer), HELP],
    operands: operandValues(command),
  }));
  return [...offers, ...helpOffers()];
}

/** What follows `help` and the first words of a name. */
function helpOffers(): readonly CommandOffer[] {
  const parents = new Set(longNames().map((name) => name.slice(0, name.lastIndexOf(' '))));
  return [
    ...groupWords(),
    ...[...parents].map((group) => ({ group, words: wordsBehind(group) })),
  ].map(({ group, words }) => ({ name: `help ${group}`, options: [], operands: { words, files: false } }));
}

const HELP: OptionOffer = { word: '--help', meaning: 'print the help', takesValue: false, words: [], files: false };

function optionOffer(option: ExplainedOption): OptionOffer {
  const values = valuesOf(option.value ?? '', option.choices);
  return { word: option.name, meaning: option.meaning, takesValue: option.value !== undefined, ...values };
}

function operandValues({ name: command, operands }: ExplainedCommand): Values {
  const each = operands.map(({ name, choices }) => {
    // The only operand whose values are commands of this table.
    return name === 'COMMAND' ? { words: firstWords(), files: false } : valuesOf(name, choices);
  });
  const words = [...wordsBehind(command), ...each.flatMap((values) => values.words)];
  return { words, files: each.some(({ files }) => files) };
}

/** `form` is what the help calls the value. */
function valuesOf(form: string, choices: readonly string[] = []): Values {
  return { words: choices.map((word) => ({ word, meaning: '' })), files: /\bFILE\b|\bFOLDER\b/.test(form) };
}
