// The import directions and the confinement of what touches the outside, held over all of src/. What each layer is
// for: the headers of its files. How a file is scanned: support/source.ts.

import assert from 'node:assert/strict';
import test from 'node:test';
import { codeOf, importsOf, repositoryFiles, resolveImport, sourceFiles, type SourceFile } from '../support/source.ts';

/** From the innermost outwards. A layer imports from itself and from earlier rows, never from others in its row. */
const ROWS = [
  ['core'],
  ['config'],
  ['crypto', 'store', 'limits', 'ops', 'client', 'http/engine'],
  ['pastes', 'cluster'],
  ['http'],
  ['authority'],
  ['operator'],
  ['assembly'],
  ['serve'],
  ['main'],
];

/** The one exception: the command `serve` is loaded by its name, as all commands are. */
const LOADED_BY_NAME = ['src/operator/commands.ts imports src/serve.ts'];

/** Which layers may import a module of Node. Modules that are not named here are free to all but core and pastes. */
const CONFINED: Record<string, readonly string[]> = {
  'node:sqlite': ['store'],
  'node:crypto': ['crypto', 'authority'],
  'node:http': ['http', 'http/engine', 'cluster'],
  'node:https': ['http', 'cluster'],
  'node:http2': ['http'],
  'node:net': ['http', 'http/engine'],
  'node:tls': ['http', 'http/engine'],
  'node:dgram': [],
  'node:console': [],
  'node:perf_hooks': ['ops'],
  'node:process': [],
};

/** The only modules of Node that these layers may import, since they are rules without input and output. */
const ONLY: Record<string, readonly string[]> = { core: ['node:buffer'], pastes: [] };

/** The one file that may use `require`; the file says why. */
const REQUIRES_HTTP = 'src/http/engine/node-http.ts';

const files = sourceFiles();

function layerOf(path: string): string {
  return /^src\/(http\/engine|[^/.]+)/.exec(path)?.[1] ?? path;
}

function rowOf(path: string): number {
  const row = ROWS.findIndex((layers) => layers.includes(layerOf(path)));
  assert.notEqual(row, -1, `${path} is in no known layer`);
  return row;
}

/** One line for each match of `pattern` in the code of the files: where and what. */
function matches(searched: readonly SourceFile[], pattern: RegExp): string[] {
  return searched.flatMap(({ path, code }) => [...code.matchAll(pattern)].map((match) => {
    return `${path}:${code.slice(0, match.index).split('\n').length}: ${match[0]}`;
  }));
}

test('src: every import is a file of src/ or a module of Node', () => {
  const known = new Set(repositoryFiles());
  const wrong = files.flatMap((file) => importsOf(file)
    .filter((name) => !name.startsWith('node:') && !known.has(resolveImport(file.path, name)))
    .map((name) => `${file.path}: ${name}`));
  assert.deepEqual(wrong, []);
  assert.ok(files.length > 0);
});

test('src: modules are imported under names that a scanner can see', () => {
  const others = files.filter(({ path }) => path !== REQUIRES_HTTP);
  assert.deepEqual(matches(others, /\bgetBuiltinModule\b|\bcreateRequire\b|\bimport\(\s*[^'"\s]/g), []);
});

test(`src: but in a cluster, node:http is imported for its types alone, and loaded by ${REQUIRES_HTTP}`, () => {
  const others = files.filter(({ path }) => layerOf(path) !== 'cluster');
  const loads = others.flatMap(({ path, text }) => [...text.matchAll(/^import (?!type\b)[^;]*? from 'node:http';/gm)]
    .map(([statement]) => `${path}: ${statement}`));
  assert.deepEqual(loads, []);
  const required = files.find(({ path }) => path === REQUIRES_HTTP)?.text ?? '';
  const calls = required.matchAll(/^const .*createRequire\(import\.meta\.url\)\('([^']*)'\)/gm);
  assert.deepEqual([...calls].map(([, name]) => name), ['node:http']);
});

test('src: imports go from the outer layers to the inner ones', () => {
  const wrong = files.flatMap((file) => importsOf(file)
    .map((name) => resolveImport(file.path, name))
    .filter((target) => target.startsWith('src/') && layerOf(target) !== layerOf(file.path))
    .filter((target) => rowOf(target) >= rowOf(file.path))
    .map((target) => `${file.path} imports ${target}`));
  assert.deepEqual(wrong.filter((edge) => !LOADED_BY_NAME.includes(edge)), []);
});

test('src: no file imports itself by way of others, not for types either', () => {
  // Only static imports count: a file that is loaded on demand, and a thread's file, begin on their own.
  const targets = new Map(files.map(({ path, text }) => [
    path, [...text.matchAll(/^(?:import|export)[^;]*? from '(\.[^']+)';/gm)].map(([, name = '']) => resolveImport(path, name)),
  ]));
  // A file is done when all that it imports is done. What is left at the end is in a circle, or leads to one.
  const done = new Set<string>();
  for (let before = -1; before < done.size;) {
    before = done.size;
    for (const [path, imported] of targets) {
      if (imported.every((target) => !targets.has(target) || done.has(target))) done.add(path);
    }
  }
  assert.deepEqual([...targets.keys()].filter((path) => !done.has(path)), []);
});

test('src: modules of Node stay in the layers they belong to', () => {
  const wrong = files.flatMap((file) => importsOf(file)
    .filter((name) => name.startsWith('node:'))
    .filter((name) => {
      const layer = layerOf(file.path);
      return !(CONFINED[name]?.includes(layer) ?? true) || !(ONLY[layer]?.includes(name) ?? true);
    })
    .map((name) => `${file.path} imports ${name}`));
  assert.deepEqual(wrong, []);
});

test('src: clocks and randomness are handed in below assembly.ts', () => {
  const inner = files.filter(({ path }) => rowOf(path) < rowOf('src/assembly.ts'));
  const ambient = /\bDate\.now\b|\bnew Date\(\s*\)|(?<![.\w$])(?:performance|crypto)\.|\bMath\.random\b/g;
  assert.deepEqual(matches(inner, ambient), []);
});

test('src: process and console are main.ts\'s alone', () => {
  const others = files.filter(({ path }) => path !== 'src/main.ts');
  assert.deepEqual(matches(others, /(?<![.\w$])(?:process|console)\s*[.[]|\bglobalThis\b/g), []);
});

test('pastes: knows no HTTP', () => {
  const pastes = files.filter(({ path }) => layerOf(path) === 'pastes');
  const words = /\b(?:IncomingMessage|ServerResponse|Request|Response|Headers|fetch|statusCode|setHeader)\b/g;
  assert.deepEqual(matches(pastes, words), []);
});

/** SQL that changes something, wherever in the statement the word stands (WITH ... DELETE). */
const CHANGING = /\b(?:INSERT|UPDATE|DELETE|REPLACE\s+INTO)\b/i;

/**
 * The calls of get and iterate in a file that may run a change. Allowed are calls on a Map, and on a statement whose
 * SQL begins with a literal that reads, prepared in the same file under that name or in the same expression. Any
 * other call counts as a change.
 */
function doubtfulReads({ path, text, code }: SourceFile): string[] {
  const names = new Map<string, boolean>();
  const maps = code.matchAll(/([\w$]+)\??(?::\s*(?:Readonly|Weak)?Map<|\s*=\s*new (?:Weak)?Map\b)/g);
  for (const match of maps) names.set(match[1]!, true);
  for (const match of code.matchAll(/([\w$]+)\s*[=:]\s*[\w$.#]+\.prepare\(/g)) {
    const name = match[1]!;
    names.set(name, (names.get(name) ?? true) && reads(match.index + match[0].length));
  }

  return [...code.matchAll(/([\w$]+|\))\s*[?!]?\.(?:get|iterate)\(/g)].filter((match) => {
    if (match[1] !== ')') return names.get(match[1]!) !== true;
    const open = openingOf(code, match.index);
    return !code.slice(0, open).endsWith('.prepare') || !reads(open + 1);
  }).map((match) => `${path}:${code.slice(0, match.index).split('\n').length}: ${match[0]}`);

  function reads(argument: number): boolean {
    const sql = text.slice(argument, closingOf(code, argument));
    return /^\s*['"`]\s*(?:SELECT|PRAGMA|WITH)\b/.test(sql) && !CHANGING.test(sql);
  }
}

/** The position of the parenthesis that belongs to the one at `closing`. */
function openingOf(code: string, closing: number): number {
  let depth = 0;
  for (let position = closing; position >= 0; position -= 1) {
    if (code[position] === ')') depth += 1;
    if (code[position] === '(') depth -= 1;
    if (depth === 0) return position;
  }
  throw new Error('a parenthesis without its partner');
}

/** The position of the parenthesis that closes the argument list that begins at `start`. */
function closingOf(code: string, start: number): number {
  let depth = 1;
  for (let position = start; position < code.length; position += 1) {
    if (code[position] === '(') depth += 1;
    if (code[position] === ')') depth -= 1;
    if (depth === 0) return position;
  }
  throw new Error('a parenthesis without its partner');
}

// StatementSync.get() of INSERT or DELETE ... RETURNING gives the row although the commit failed (nodejs/node#63311).
test('store: no change runs through get() or iterate()', () => {
  assert.deepEqual(files.flatMap((file) => (layerOf(file.path) === 'store' ? doubtfulReads(file) : [])), []);
});

test('store: the rule about get() sees what it must', () => {
  const calls = (text: string) => doubtfulReads({ path: 'x.ts', text, code: codeOf(text, 'x.ts') }).length;
  assert.equal(calls('const find = db.prepare(`SELECT ${columns} FROM pastes`); find.get({ id });'), 0);
  assert.equal(calls('const counts = new Map<string, number>(); counts.get(id);'), 0);
  assert.equal(calls('db.prepare("PRAGMA user_version").get();'), 0);
  assert.equal(calls('const burn = db.prepare(`\n DELETE FROM pastes RETURNING id`); burn.all();'), 0);
  assert.equal(calls('const burn = db.prepare(`\n DELETE FROM pastes RETURNING id`); burn.get();'), 1);
  assert.equal(calls('const burn = db.prepare("WITH x AS (SELECT 1) DELETE FROM pastes"); burn.iterate();'), 1);
  assert.equal(calls('db.prepare("insert into pastes values (1) returning id").get();'), 1);
  assert.equal(calls('const burn = db.prepare(sql); burn.get();'), 1);
  assert.equal(calls('function one(statement: StatementSync) { return statement.get(); }'), 1);
});

test('support/source: comments, strings, templates and regular expressions are not code', () => {
  assert.equal(codeOf('a(/["\'`/]/g, b / c); // \'x', 'x'), 'a(/      /g, b / c);      ');
  assert.equal(codeOf("a[b]! / c + d! / 'e' && !/f/.test(g)", 'x'), "a[b]! / c + d! / ' ' && !/ /.test(g)");
  assert.equal(codeOf('`x ${y + `z${{ a: 1 }}`} \\` w`;', 'x'), '`   {y + `  {{ a: 1 }}`}     `;');
  assert.equal(codeOf("'it\\'s' /* \n */ + \"//\"", 'x'), "'     '    \n    + \"  \"");
  assert.throws(() => codeOf('`open', 'x.ts'), /x\.ts: cannot follow/);
});
