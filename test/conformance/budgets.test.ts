// How much there is to read: the budgets of the source, each measured, printed and held. What else holds for every
// file is card.test.ts, and who imports whom layers.test.ts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { type Files, startInspected } from '../support/inspected.ts';
import { codeOf, importsOf, resolveImport, ROOT, type SourceFile, sourceFiles } from '../support/source.ts';
import { type PasteChallenge, solve } from '../support/work.ts';

/** These include the pages for browsers, what an operator governs by, and the cluster. */
const MAX_LINES = 16_300;
/** Lines of what is loaded only when the database is kept by nodes elsewhere. */
const MAX_CLUSTER_LINES = 1_100;
const MAX_FILES = 90;
/** Lines of the files that both threads have loaded when the first answer is given with default settings. */
const MAX_LOADED_LINES = 9500;
const MAX_FILES_OF_A_POST = 32;
const MAX_FILES_OF_A_GET = 25;
const MAX_FUNCTION_LINES = 50;
/** Lines of what measures, so that it too can be read before its figures are believed. */
const MAX_BENCH_LINES = 1700;

const files = sourceFiles();

/** Fails when the figure is above its budget, and prints it in any case. */
function hold(t: TestContext, what: string, figure: number, budget: number): void {
  t.diagnostic(`${what}: ${figure} of ${budget}`);
  assert.ok(figure <= budget, `${what}: ${figure}, and the budget is ${budget}`);
}

function linesOf(text: string): number {
  return text.split('\n').length - 1;
}

test('src: lines and files', (t) => {
  const isOfCluster = ({ path }: SourceFile) => path.startsWith('src/cluster/');
  const linesIn = (some: readonly SourceFile[]) => some.reduce((sum, { text }) => sum + linesOf(text), 0);
  hold(t, 'lines', linesIn(files), MAX_LINES);
  hold(t, 'lines of the cluster', linesIn(files.filter(isOfCluster)), MAX_CLUSTER_LINES);
  hold(t, 'files', files.length, MAX_FILES);
});

test('scripts/bench: lines', (t) => {
  const folder = join(ROOT, 'scripts', 'bench');
  const lines = readdirSync(folder).map((name) => linesOf(readFileSync(join(folder, name), 'utf8')));
  hold(t, 'lines', lines.reduce((sum, count) => sum + count, 0), MAX_BENCH_LINES);
});

interface Function {
  readonly place: string;
  readonly lines: number;
}

test('src: the longest function', (t) => {
  const [longest] = files.flatMap(functionsOf).sort((one, other) => other.lines - one.lines);
  hold(t, `lines of the function at ${longest!.place}`, longest!.lines, MAX_FUNCTION_LINES);
});

/** Functions, methods and arrow functions with a body in braces. */
function functionsOf({ path, text }: SourceFile): Function[] {
  const code = codeOf(stripTypeScriptTypes(text, { mode: 'strip' }), path);
  const opened: number[] = [];
  const found: Function[] = [];
  for (const { index, 0: brace } of code.matchAll(/[{}]/g)) {
    if (brace === '{') {
      opened.push(index);
      continue;
    }
    const start = startOfFunction(code, opened.pop()!);
    if (start === undefined) continue;
    const place = `${path}:${linesOf(code.slice(0, start)) + 1}`;
    found.push({ place, lines: linesOf(code.slice(start, index)) + 1 });
  }
  return found;
}

/** Where the function begins whose body opens at `open`; undefined for other blocks, classes and objects. */
function startOfFunction(code: string, open: number): number | undefined {
  const before = code.slice(0, open).trimEnd();
  const isArrow = before.endsWith('=>');
  const head = isArrow ? before.slice(0, -2).trimEnd() : before;
  if (!head.endsWith(')')) return isArrow ? head.search(/[\w$]+$/) : undefined;
  let depth = 0;
  let position = head.length;
  do {
    position -= 1;
    if (head[position] === ')') depth += 1;
    if (head[position] === '(') depth -= 1;
  } while (depth > 0);
  const [name = ''] = /[\w$]+\s*$/.exec(head.slice(0, position)) ?? [];
  return !isArrow && /^(?:if|for|while|switch|catch|await)\s*$/.test(name) ? undefined : position;
}

test('the rule about functions sees what it must', () => {
  const lengths = (text: string) => functionsOf({ path: 'x.ts', text, code: text }).map(({ lines }) => lines);
  assert.deepEqual(lengths('function f(\n  a: { b: number },\n): void {\n  if (a) {\n  }\n}\n'), [6]);
  assert.deepEqual(lengths('class A {\n  #f = async (a) => {\n    for (;;) {\n    }\n  };\n  g() {\n  }\n}\n'), [4, 2]);
  assert.deepEqual(lengths('const a = { b: 1,\n c: { d: 2 } };\n'), []);
});

/** The files that a thread's file imports when it begins, itself included; what it loads later is not among them. */
function importedFrom(path: string, found = new Set<string>()): Set<string> {
  const file = files.find((one) => one.path === path);
  if (file === undefined || found.has(path)) return found;
  found.add(path);
  const later = new Set([...file.text.matchAll(/\b(?:import|URL)\(\s*'([^']+)'/g)].map(([, name]) => name));
  const types = new Set([...file.text.matchAll(/^import type [^;]*? from '([^']+)'/gm)].map(([, name]) => name));
  for (const name of importsOf(file)) {
    if (!later.has(name) && !types.has(name)) importedFrom(resolveImport(path, name), found);
  }
  return found;
}

/** Requests of each kind. */
const ROUNDS = 4;

function inAll([first = [], ...others]: readonly Files[]): Files {
  return first.filter((path) => others.every((other) => other.includes(path)));
}

test('the service with default settings: what it loads, and what requests enter', async (t) => {
  const { main, loaded, entered } = await startInspected(t);
  const post = async (): Promise<string> => {
    const { nonce, token, difficulty } = await (await fetch(`${main.url}/challenge`)).json() as PasteChallenge;
    await entered();
    const response = await fetch(`${main.url}/`, {
      method: 'POST',
      headers: { 'X-PoW-Token': token, 'X-PoW-Solution': solve(nonce, difficulty) },
      body: crypto.getRandomValues(new Uint8Array(1024)),
    });
    const { id } = await response.json() as { id: string };
    assert.equal(response.status, 201);
    await isLogged(response);
    return id;
  };
  const get = async (id: string): Promise<void> => {
    const response = await fetch(`${main.url}/${id}/raw`);
    assert.equal((await response.arrayBuffer()).byteLength, 1024);
    await isLogged(response);
  };
  // The line of the log is written after the answer, and is a part of the request.
  const isLogged = (response: Response): Promise<unknown> => (
    main.printed(new RegExp(response.headers.get('x-request-id') ?? assert.fail('no request id')))
  );

  // Work that is done once, at the first request, is not a part of every one; nor are timers that fire beside some.
  await get(await post());
  const posts: Files[] = [];
  const gets: Files[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const id = await post();
    posts.push(await entered());
    await get(id);
    gets.push(await entered());
  }
  const ofPost = inAll(posts);
  const ofGet = inAll(gets);
  const serving = (await loaded()).map((path) => `src/${path.replace(/\.js$/, '.ts')}`);
  const all = [...new Set([...serving, ...importedFrom('src/store/thread.ts')])];
  assert.deepEqual(all.filter((path) => path.startsWith('src/authority/')), ['src/authority/open.ts']);
  assert.deepEqual(all.filter((path) => /\bpages?\.ts$/.test(path)), [], 'no browser has asked');
  const lines = all.map((path) => linesOf(readFileSync(join(ROOT, path), 'utf8')));
  t.diagnostic(`POST: ${ofPost.join(' ')}`);
  t.diagnostic(`GET: ${ofGet.join(' ')}`);
  hold(t, 'lines loaded', lines.reduce((sum, count) => sum + count, 0), MAX_LOADED_LINES);
  hold(t, 'files of a small POST', ofPost.length, MAX_FILES_OF_A_POST);
  hold(t, 'files of a GET', ofGet.length, MAX_FILES_OF_A_GET);
});
