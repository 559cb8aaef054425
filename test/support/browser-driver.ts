// What tests see of any browser, and what chromium.ts and firefox.ts have in common: commands, answers and events as
// JSON over a WebSocket.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Scheme = 'light' | 'dark';

/**
 * A name that leads to 127.0.0.1. Browsers trust http://127.0.0.1 like HTTPS, but over plain HTTP to a name they send
 * less: no Sec-Fetch-Site.
 */
export const NAMED_HOST = 'paste.test';

/** The window, in pixels at 100 % zoom. */
export interface View {
  readonly width: number;
  readonly height: number;
  /** 2 is 200 %. */
  readonly zoom?: number;
}

export type Key = 'Tab' | 'Enter';

/** Elements with this role, and with this name if one is given. */
export interface Accessible {
  readonly role: string;
  readonly name?: string;
}

export interface Tab {
  /** Resolves when the document has loaded, whatever its status. The headers go with each request from then on. */
  open(url: string, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** Resolves when the document that the action leads to has loaded. */
  follow(action: () => Promise<void>): Promise<void>;
  /** Evaluates in the context of the page. The value, or what a promise resolves with, comes back as JSON. */
  evaluate<Value>(expression: string): Promise<Value>;
  /** Clicks the middle of the first matching element with the mouse; `times` clicks do not wait for each other. */
  click(selector: string, times?: number): Promise<void>;
  /** Types by the keyboard, into the element that has the focus. */
  type(text: string): Promise<void>;
  press(key: Key): Promise<void>;
  resize(view: View): Promise<void>;
  /** A PNG as wide as the window, of the page from its top to its end or at most `maxHeight`. */
  screenshot(maxHeight?: number): Promise<Uint8Array>;
  /** How many elements of each kind assistive technology sees. Ask for many at once, since a look takes long. */
  accessible(wanted: readonly Accessible[]): Promise<readonly number[]>;
  /** URLs of the documents of this tab and of everything that they asked for. */
  readonly requests: readonly string[];
  /** Lines of the console, errors of the browser among them. */
  readonly messages: readonly string[];
}

export interface Saved {
  /** As the browser suggests it. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Drives a browser once it runs. The browser accepts the certificate of every server. */
export interface Driver {
  newTab(): Promise<Tab>;
  /** Tabs that pages have opened. */
  opened(): Promise<readonly Tab[]>;
  /** What the action makes the browser save. */
  saving(action: () => Promise<void>): Promise<Saved>;
  /** Asks the browser to end. */
  close(): Promise<void>;
}

/** How one make of browser is started, and driven from there on. */
export interface Make {
  /** Gives the options of the program; writes preferences into the profile if the browser reads them there. */
  prepare(setup: Setup): readonly string[];
  /** What it prints when it can be driven; the first group is the URL of the WebSocket. */
  readonly ready: RegExp;
  drive(url: string, setup: Setup): Promise<Driver>;
}

export interface Setup {
  readonly profile: string;
  /** A PKCS#12 bundle without a password: its certificate is shown to every server that asks for one. */
  readonly bundle?: Uint8Array | undefined;
  readonly downloads: string;
  /** Everything that is not on loopback has to go through this port. */
  readonly proxyPort: number;
  readonly scheme: Scheme;
}

export type Fields = Readonly<Record<string, unknown>>;

export interface WireEvent {
  readonly method: string;
  readonly params: Fields;
  /** Only in DevTools. */
  readonly sessionId?: string;
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  /** An object in DevTools, a code beside `message` in BiDi. */
  readonly error?: { readonly message: string } | string;
  readonly message?: string;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Wire {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(event: WireEvent) => void>();
  #lastId = 0;

  static async open(url: string): Promise<Wire> {
    const socket = new WebSocket(url);
    await inTime(once(socket, 'open'), url);
    return new Wire(socket);
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#receive(JSON.parse(String(data)) as Answer | WireEvent));
    socket.addEventListener('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser has closed the connection'));
    });
  }

  #receive(message: Answer | WireEvent): void {
    if ('method' in message) {
      for (const listener of [...this.#listeners]) listener(message);
      return;
    }
    const { id = 0, result, error } = message;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(typeof error === 'string' ? `${error}: ${message.message}` : error.message));
  }

  /** Rejects with the words of the browser when it refuses the command. */
  call<Result>(method: string, params: Fields = {}, sessionId?: string): Promise<Result> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return inTime(answered, method) as Promise<Result>;
  }

  listen(listener: (event: WireEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** The first event from now on for which `pick` gives something. */
  next<Value>(what: string, pick: (event: WireEvent) => Value | undefined): Promise<Value> {
    const { promise, resolve } = Promise.withResolvers<Value>();
    const listener = (event: WireEvent): void => {
      const value = pick(event);
      if (value !== undefined) resolve(value);
    };
    this.#listeners.add(listener);
    return inTime(promise, what).finally(() => this.#listeners.delete(listener));
  }
}

/** `ids` gives all tabs, `own` those that the browser began with or tests opened. Attaches to each other tab once. */
export function openedTabs(
  ids: () => Promise<readonly string[]>, own: ReadonlySet<string>, attach: (id: string) => Promise<Tab>,
): () => Promise<readonly Tab[]> {
  const attached = new Map<string, Promise<Tab>>();
  return async () => {
    const others = (await ids()).filter((id) => !own.has(id));
    for (const id of others) if (!attached.has(id)) attached.set(id, attach(id));
    return Promise.all(others.map((id) => attached.get(id)!));
  };
}

/** The events of a download: the name of its file comes with the first. */
interface SavingEvents {
  readonly begins: string;
  readonly ends: string;
  readonly isWhole: (params: Fields) => boolean;
}

/** What the action makes the browser save. */
export async function saving(
  wire: Wire,
  { downloads }: Setup,
  { begins, ends, isWhole }: SavingEvents,
  action: () => Promise<void>,
): Promise<Saved> {
  let name = '';
  const saved = wire.next('a download', ({ method, params }) => {
    if (method === begins) name = String(params['suggestedFilename']);
    return method === ends && isWhole(params) ? true : undefined;
  });
  await Promise.all([saved, action()]);
  return { name, bytes: readFileSync(join(downloads, name)) };
}

/** Makes the expression give its value as JSON, or what its promise resolves with. */
export function asJson(expression: string): string {
  return `Promise.resolve(${expression}).then((value) => JSON.stringify(value))`;
}

/** An expression that scrolls an element into view and gives its middle. */
export function middleOf(selector: string): string {
  return `(() => {
    const element = document.querySelector(${JSON.stringify(selector)});
    element.scrollIntoView({ block: 'center' });
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x: Math.round(x + width / 2), y: Math.round(y + height / 2) };
  })()`;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** An expression for the size of a picture as wide as the window and as tall as the page, or at most `maxHeight`. */
export function pictured(maxHeight: number): string {
  return `({
    width: innerWidth,
    height: Math.min(${maxHeight}, Math.max(innerHeight, document.documentElement.scrollHeight)),
  })`;
}

/** How long a browser may take for one thing. */
const PATIENCE_MS = 30_000;

/** Rejects when it takes too long. */
export async function inTime<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE_MS} ms for ${what}`)), PATIENCE_MS);
    // A promise that is no longer waited for must not keep the process alive.
    timer.unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
