// The built service under V8's inspector: which of its files are loaded, and which of them a request enters. The
// counting is V8's own (Chrome DevTools Protocol, domain Profiler); nothing is added to what runs.

import { once } from 'node:events';
import { dirname, relative } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { builtMain } from './built.ts';
import { type MainProcess, startServing } from './main-process.ts';

/** Files of dist/, relative to it, sorted. */
export type Files = readonly string[];

export interface Inspected {
  readonly main: MainProcess & { readonly url: string };
  /** The files that the serving thread has loaded. */
  loaded(): Promise<Files>;
  /** The loaded files of which a function has run since this was asked last. */
  entered(): Promise<Files>;
}

type Ask = (method: string, params?: object) => Promise<Record<string, unknown>>;

interface Answer {
  readonly id: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

interface Event {
  readonly method: string;
  readonly params: { readonly url: string };
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
    }[];
  }[];
}

/** A service with default settings on a free port. */
export async function startInspected(t: TestContext): Promise<Inspected> {
  const main = await startServing(t, { nodeOptions: ['--inspect=127.0.0.1:0'] });
  const [, inspector = ''] = /(ws:\/\/127\.0\.0\.1:\d+\/\S+)/.exec(main.stderr()) ?? [];
  const { ask, events } = await connect(t, inspector);
  await ask('Profiler.enable');
  await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return {
    main,
    loaded: async () => {
      events.length = 0;
      await ask('Debugger.enable');
      await ask('Debugger.disable');
      return filesOf(events.filter(({ method }) => method === 'Debugger.scriptParsed').map(({ params }) => params.url));
    },
    entered: async () => {
      const { result } = await ask('Profiler.takePreciseCoverage') as unknown as Coverage;
      return filesOf(result.filter(({ functions }) => functions.some(isCalled)).map(({ url }) => url));
    },
  };
}

/** The code of a module itself, which begins at offset 0, does not count: it runs once, when it is loaded. */
function isCalled({ ranges: [range] }: Coverage['result'][number]['functions'][number]): boolean {
  return range !== undefined && range.startOffset > 0 && range.count > 0;
}

function filesOf(urls: readonly string[]): Files {
  const folder = dirname(builtMain());
  return urls.filter((url) => url.startsWith('file:')).map((url) => relative(folder, fileURLToPath(url))).sort();
}

/** `ask` sends one command at a time; `events` are what the inspector tells by itself. */
async function connect(t: TestContext, url: string): Promise<{ ask: Ask; events: Event[] }> {
  const socket = new WebSocket(url);
  t.after(() => socket.close());
  await once(socket, 'open');
  const events: Event[] = [];
  let answered: (answer: Answer) => void;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data as string) as Answer | Event;
    if ('id' in message) answered(message);
    else events.push(message);
  });
  const ask: Ask = async (method, params = {}) => {
    const answer = new Promise<Answer>((resolve) => (answered = resolve));
    socket.send(JSON.stringify({ id: 1, method, params }));
    const { result = {}, error } = await answer;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  return { ask, events };
}
