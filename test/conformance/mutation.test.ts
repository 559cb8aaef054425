// The script that makes mutants, the one that keeps what became of them, and the one that says which places of src/ were
// entered. Running them is npm run mutate and npm run coverage.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import test from 'node:test';
import { temporaryFolder } from '../support/programs.ts';
import { ROOT } from '../support/source.ts';

interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Piece {
  readonly start: number;
  readonly text: string;
}

interface Scripts {
  readonly mutantsOf: (source: string, path: string) => Mutant[];
  readonly piecesOf: (source: string, path: string) => Piece[];
}

async function scripts(): Promise<Scripts> {
  const mutants: string = join(ROOT, 'scripts', 'mutation', 'mutants.mjs');
  return await import(mutants);
}

test('mutantsOf: changes operators, constants and conditions of code, and nothing else', async () => {
  const { mutantsOf } = await scripts();
  const made = (source: string): string[] =>
    mutantsOf(source, 'x.ts').map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end));
  assert.deepEqual(made('f(a < 10);'), ['f(a <= 10);', 'f(a >= 10);', 'f(a < 11);']);
  assert.deepEqual(made('if (a && !b) c();'), ['if (true) c();', 'if (false) c();', 'if (a || !b) c();', 'if (a && b) c();']);
  assert.deepEqual(made('x = a(1) ? -b : c?.d;'), [
    'x = true ? -b : c?.d;', 'x = false ? -b : c?.d;', 'x = a(2) ? -b : c?.d;', 'x = a(1) ? b : c?.d;',
    'x = a(1) ? -b : c.d;',
  ]);
  assert.deepEqual(made('while (a) b += 0xff;'), ['while (false) b += 0xff;', 'while (a) b -= 0xff;', 'while (a) b += 256;']);
  assert.deepEqual(made('const s = `${a + b} + c`;'), ['const s = `${a - b} + c`;']);
  assert.deepEqual(made('const n = 1_000n ?? true;'), ['const n = 1001n ?? true;', 'const n = 1_000n && true;', 'const n = 1_000n ?? false;']);
  // Where `?.` finds no value the rest is not entered, so the mutant begins with the value before it.
  assert.deepEqual(mutantsOf('a?.b + c?.(1);', 'x.ts').map(({ start, text }) => [start, text]), [
    [0, 'a.'], [5, '-'], [7, 'c'], [11, '2'],
  ]);
  for (const text of ['// a < b', "'a < b';", '/a+b/.test(s);', "'a' + b;", 'type A<B> = B | 1;', 'a!.b;', 'x.true;', 'f({ 1: a });']) {
    assert.deepEqual(made(text), [], text);
  }
});

test('piecesOf: a mutant belongs to a statement, which stays what it is whatever is written beside it', async () => {
  const { piecesOf } = await scripts();
  const one = "function one(): number {\n  // why\n  return `\n${1}\nx`.length;\n}";
  const two = 'const two = [\n  2,\n] as const;';
  const texts = (source: string): string[] => piecesOf(source, 'x.ts').map(({ text }) => text);
  const source = `// what\n${one}\n\n/** of what\n * use */\n${two}\n`;
  assert.deepEqual(texts(source), [one, two]);
  assert.deepEqual(texts(`// what else\n\n${two} // since\n${one}`), [two, one]);
  assert.deepEqual(piecesOf(source, 'x.ts').map(({ start }) => start), [source.indexOf(one), source.indexOf(two)]);
});

test('writeFound, readFound: another clone knows what was killed, and tries survivors again when their tests have changed', async (t) => {
  type Tried = { path: string; piece: string; key: string; testedKey: string; outcome?: string };
  const script: string = join(ROOT, 'scripts', 'mutation', 'found.mjs');
  const { readFound, writeFound } = (await import(script)) as {
    writeFound: (file: string, mutants: Tried[]) => number;
    readFound: (file: string) => (mutant: Tried) => string | undefined;
  };
  const file = join(temporaryFolder(t), 'found.jsonl');
  const tried = (path: string, piece: string, key: string, outcome?: string): Tried =>
    ({ path, piece, key, testedKey: `${key} by tests`, ...(outcome && { outcome }) });
  const mutants = [
    tried('a.ts', 'one', '1', 'killed'), tried('a.ts', 'one', '2', 'survived'), tried('a.ts', 'one', '3', 'killed by time'),
    tried('a.ts', 'one', '4', 'entered by no test'), tried('b.ts', 'two', '5', 'killed'), tried('b.ts', 'two', '6'),
    tried('b.ts', 'three', '7'), tried('c.ts', 'four', '8'),
  ];
  const outcomes = (): (string | undefined)[] => mutants.map(readFound(file));
  assert.deepEqual(outcomes(), mutants.map(() => undefined), 'nothing was kept yet');
  assert.equal(writeFound(file, mutants), 5);
  assert.deepEqual(outcomes(), ['killed', 'survived', 'killed by time', 'survived', 'killed', undefined, undefined, undefined]);

  const outcome = readFound(file);
  assert.equal(outcome({ ...mutants[1]!, testedKey: '2 by other tests' }), undefined);
  assert.equal(outcome({ ...mutants[0]!, testedKey: '1 by other tests' }), 'killed');
  assert.equal(outcome(tried('a.ts', 'one, which has changed', '9')), undefined);
  assert.equal(outcome(tried('c.ts', 'two', '5')), undefined, 'another file');
});

test('enteredIn: what one of several processes or threads carried out, in src/ or in dist/, is entered', async (t) => {
  const script: string = join(ROOT, 'scripts', 'mutation', 'entered.mjs');
  const { coverageEnv, enteredIn, rangesOf } = (await import(script)) as {
    coverageEnv: (folder: string) => NodeJS.ProcessEnv;
    enteredIn: (folder: string, root: string) => Map<string, Uint8Array>;
    rangesOf: (mark: Uint8Array, wanted: number) => [number, number][];
  };
  const root = temporaryFolder(t);
  const coverage = join(root, 'coverage');
  // dist/ lacks the types at the end of a line, so what follows is at another place there.
  const source = [
    'const given: number = Number(process.argv[2])     as number;',
    'function one(): string {', "  return 'one';", '}', 'function two(): string {', "  return 'two';", '}',
    "if (given === 3) console.log('three'); else if (given === 1) one(); else two();", '',
  ].join('\n');
  const compiled = source.replaceAll(': number', '        ').replaceAll(': string', '        ').replace(/ +as number;/, ';');
  assert.ok(compiled.length < source.length);
  const starter = `
    import { Worker } from 'node:worker_threads';
    new Worker(new URL('thread.ts', import.meta.url), { env: {} });`;
  const thread = "if (Object.keys(process.env).length > 0) throw new Error('told');";
  const files = { 'src/a.ts': source, 'dist/a.js': compiled, 'src/never.ts': '', 'src/b.ts': starter, 'src/thread.ts': thread };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const run = (file: string, given = ''): void => {
    assert.equal(spawnSync(process.execPath, [resolve(root, file), given], { env: coverageEnv(coverage) }).status, 0);
  };
  const open = (): string[] => {
    const mark = enteredIn(coverage, root).get('src/a.ts')!;
    return rangesOf(mark, 0).map(([start, end]) => source.slice(start, end).trim()).filter((text) => text !== '');
  };
  run('dist/a.js', '1');
  const three = "console.log('three');";
  assert.deepEqual(open(), ["function two(): string {\n  return 'two';\n}", three, 'else two();']);
  const released = join(temporaryFolder(t), 'dist');
  cpSync(join(root, 'dist'), released, { recursive: true });
  run(join(released, 'a.js'), '2');
  rmSync(released, { recursive: true });
  assert.deepEqual(open(), [three], 'a release elsewhere counts, though it is gone');
  run('src/a.ts', '2');
  assert.deepEqual(open(), [three]);
  writeFileSync(join(coverage, 'coverage-cut.json'), '{"result":[{"scr');
  assert.deepEqual([...enteredIn(coverage, root).keys()], ['src/a.ts'], 'one that was killed while it wrote tells nothing');
  run('src/b.ts');
  assert.ok(enteredIn(coverage, root).has('src/thread.ts'), 'a thread with an empty environment, which finds it empty');
});
