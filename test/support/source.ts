// The repository as text, for tests that hold its own rules: which files there are, which parts of them are code, and
// what they import. It is a scanner, not a parser: it knows strings, templates, comments and regular expressions, and
// refuses what it cannot follow.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, absolute. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface SourceFile {
  /** Relative to ROOT, with slashes. */
  readonly path: string;
  readonly text: string;
  /** `text` with comments and quoted text replaced by blanks, character for character. */
  readonly code: string;
}

/** All files of the repository, relative to ROOT, sorted, without those that git ignores, even if there is no git. */
export function repositoryFiles(): string[] {
  return (filesByGit() ?? filesByWalk('')).filter((path) => existsSync(join(ROOT, path))).sort();
}

/** The TypeScript files under src/. */
export function sourceFiles(): SourceFile[] {
  const paths = repositoryFiles().filter((path) => path.startsWith('src/') && path.endsWith('.ts'));
  return paths.map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    return { path, text, code: codeOf(text, path) };
  });
}

// Only a .git in ROOT itself counts: an export may lie inside somebody else's repository.
function filesByGit(): string[] | undefined {
  if (!existsSync(join(ROOT, '.git'))) return undefined;
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((path) => path !== '') : undefined;
}

function filesByWalk(folder: string): string[] {
  const rules = readFileSync(join(ROOT, '.gitignore'), 'utf8').split('\n');
  const ignored = rules.map((rule) => rule.replace(/^\/|\/$/g, ''));
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.name === '.git' || ignored.includes(path) || entry.name.endsWith('.tgz')) return [];
    return entry.isDirectory() ? filesByWalk(path) : [path];
  });
}

/** Every module that the file names in an import, export, import() or new URL(), as written. */
export function importsOf({ text, code }: SourceFile): string[] {
  const beforeName = /\bfrom\s*['"]|\bimport\s*\(?\s*['"]|\bnew URL\(\s*['"]/g;
  return [...code.matchAll(beforeName)].map((match) => {
    const start = match.index + match[0].length;
    return text.slice(start, text.indexOf(text[start - 1]!, start));
  });
}

/** What `specifier` means in the file at `path`: a path relative to ROOT. Names that are not relative stay as they are. */
export function resolveImport(path: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier;
}

/** Blanks comments and the insides of strings, templates and regular expressions; `${}` in a template stays code. */
export function codeOf(text: string, path: string): string {
  const code: string[] = [];
  // One entry for each template we are inside of: how many braces are open in its `${}`.
  const openBraces: number[] = [];
  let position = 0;
  while (position < text.length) {
    const rest = text.slice(position, position + 2);
    const character = text[position]!;
    if (rest === '//') blankTo(endOfLine(position));
    else if (rest === '/*') blankTo(after('*/', position + 2));
    else if (character === '\'' || character === '"') quoted(character);
    else if (character === '/' && startsRegExp(code)) regExp();
    else if (character === '`') template();
    else if (character === '}' && openBraces.at(-1) === 0) {
      openBraces.pop();
      template();
    } else {
      if (character === '{' && openBraces.length > 0) openBraces.push(openBraces.pop()! + 1);
      if (character === '}' && openBraces.length > 0) openBraces.push(openBraces.pop()! - 1);
      keep();
    }
  }
  return code.join('');

  function keep(): void {
    code.push(text[position]!);
    position += 1;
  }

  function blankTo(end: number): void {
    code.push(text.slice(position, end).replace(/[^\n]/g, ' '));
    position = end;
  }

  function quoted(quote: string): void {
    keep();
    blankTo(endOf(new RegExp(`(?:\\\\.|[^\\\\\\n${quote}])*${quote}`, 'y')) - 1);
    keep();
  }

  function regExp(): void {
    keep();
    blankTo(endOf(/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y) - 1);
    keep();
  }

  /** From a backtick, or from the brace that closes `${`, to the next backtick or `${`. */
  function template(): void {
    keep();
    blankTo(endOf(/(?:\\[^]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y) - 1);
    if (text[position] === '{') openBraces.push(0);
    keep();
  }

  function endOf(pattern: RegExp): number {
    pattern.lastIndex = position;
    if (!pattern.test(text)) throw new Error(`${path}: cannot follow the text at character ${position}`);
    return pattern.lastIndex;
  }

  function endOfLine(from: number): number {
    const end = text.indexOf('\n', from);
    return end === -1 ? text.length : end;
  }

  function after(mark: string, from: number): number {
    const start = text.indexOf(mark, from);
    if (start === -1) throw new Error(`${path}: no ${mark} after character ${from}`);
    return start + mark.length;
  }
}

/** Whether a slash here begins a regular expression: it does not after a value. */
function startsRegExp(codeBefore: readonly string[]): boolean {
  const before = codeBefore.slice(-200).join('').trimEnd();
  // After a value, ! asserts that the value is there, and the slash divides it.
  return /(?:^|[(,=:[&|?{};+\-*%~^<>]|(?:^|[^\w)\]])!|\b(?:return|typeof|case|of|in))$/.test(before);
}
