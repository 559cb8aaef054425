// Chromium over DevTools (https://chromedevtools.github.io/devtools-protocol/).

import assert from 'node:assert/strict';
import {
  type Accessible, asJson, type Fields, type Key, type Make, middleOf, NAMED_HOST, openedTabs, pictured, type Point, saving,
  type Setup, type Tab, type View, Wire, type WireEvent,
} from './browser-driver.ts';

const SWITCHES = [
  '--headless',
  '--remote-debugging-port=0',
  '--remote-debugging-address=127.0.0.1',
  '--no-first-run',
  '--no-default-browser-check',
  // Chromium looks for no updates, and reports and synchronizes nothing.
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-client-side-phishing-detection',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-extensions',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--disable-features=AutofillServerCommunication,CertificateTransparencyComponentUpdater,HttpsUpgrades,MediaRouter,' +
    'NetworkTimeServiceQuerying,OptimizationHints,Translate',
  '--allow-browser-signin=false',
  '--component-updater=url-source=http://127.0.0.1:9/',
  '--gaia-url=http://127.0.0.1:9/',
  '--disable-component-extensions-with-background-pages',
  '--metrics-recording-only',
  '--no-pings',
  '--no-service-autorun',
  '--password-store=basic',
  // The same picture on every machine.
  '--disable-gpu',
  '--force-color-profile=srgb',
  '--hide-scrollbars',
  '--lang=en-US',
  // Containers often have 64 MB of shared memory.
  '--disable-dev-shm-usage',
];

export const chromium: Make = {
  ready: /DevTools listening on (ws:\S+)/,

  // Chromium never gets a client certificate here: it would offer those of its user's NSS database in a dialog that
  // nobody sees, and wait. Only a policy in /etc/chromium lets it choose by itself.
  prepare({ profile, proxyPort, bundle }) {
    assert.equal(bundle, undefined);
    // Its sandbox refuses to work for root.
    const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    return [
      ...SWITCHES, ...asRoot, `--user-data-dir=${profile}`, `--proxy-server=127.0.0.1:${proxyPort}`,
      `--proxy-bypass-list=${NAMED_HOST}`, `--host-resolver-rules=MAP ${NAMED_HOST} 127.0.0.1`, 'about:blank',
    ];
  },

  async drive(url, setup) {
    const wire = await Wire.open(url);
    const downloads = { behavior: 'allow', downloadPath: setup.downloads, eventsEnabled: true };
    await wire.call('Browser.setDownloadBehavior', downloads);
    const ids = async () => {
      const { targetInfos } = await wire.call<{ targetInfos: readonly Target[] }>('Target.getTargets');
      return targetInfos.filter(({ type }) => type === 'page').map(({ targetId }) => targetId);
    };
    const own = new Set(await ids());
    return {
      newTab: () => newTab(wire, setup, own),
      opened: openedTabs(ids, own, (id) => attach(wire, setup, id)),
      saving: (action) => saving(wire, setup, SAVING, action),
      close: () => wire.call('Browser.close'),
    };
  },
};

const SAVING = {
  begins: 'Browser.downloadWillBegin',
  ends: 'Browser.downloadProgress',
  isWhole: ({ state }: Fields) => state === 'completed',
};

interface Target {
  readonly targetId: string;
  readonly type: string;
}

async function newTab(wire: Wire, setup: Setup, own: Set<string>): Promise<Tab> {
  const { targetId } = await wire.call<Target>('Target.createTarget', { url: 'about:blank' });
  own.add(targetId);
  return attach(wire, setup, targetId);
}

async function attach(wire: Wire, { scheme }: Setup, targetId: string): Promise<Tab> {
  const session = { targetId, flatten: true };
  const { sessionId } = await wire.call<{ sessionId: string }>('Target.attachToTarget', session);
  const tab = new ChromiumTab(wire, sessionId);
  await Promise.all(['Page.enable', 'Network.enable', 'Runtime.enable', 'Log.enable'].map((name) => tab.call(name)));
  await tab.call('Security.setIgnoreCertificateErrors', { ignore: true });
  await tab.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  // Makes a tab in the background take keys too.
  await tab.call('Emulation.setFocusEmulationEnabled', { enabled: true });
  await tab.resize({ width: 1200, height: 800 });
  return tab;
}

interface AxNode {
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
}

const KEY_EVENTS: Readonly<Record<Key, object>> = {
  Tab: { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
};

class ChromiumTab implements Tab {
  readonly requests: string[] = [];
  readonly messages: string[] = [];
  readonly #wire: Wire;
  readonly #sessionId: string;

  constructor(wire: Wire, sessionId: string) {
    this.#wire = wire;
    this.#sessionId = sessionId;
    wire.listen((event) => {
      if (event.sessionId === sessionId) this.#note(event);
    });
  }

  #note({ method, params }: WireEvent): void {
    if (method === 'Network.requestWillBeSent') {
      this.requests.push((params.request as { url: string }).url);
    } else if (method === 'Log.entryAdded') {
      this.messages.push((params.entry as { text: string }).text);
    } else if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') {
      this.messages.push(JSON.stringify(params));
    }
  }

  call<Result>(method: string, params = {}): Promise<Result> {
    return this.#wire.call<Result>(method, params, this.#sessionId);
  }

  async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.call('Network.setExtraHTTPHeaders', { headers });
    const loaded = this.#loaded();
    // Nobody waits for this if the URL is another place in the document that is shown, since nothing loads then.
    loaded.catch(() => {});
    const begun = await this.call<{ errorText?: string; loaderId?: string }>('Page.navigate', { url });
    const { errorText, loaderId } = begun;
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    if (loaderId !== undefined) await loaded;
  }

  #loaded(): Promise<true> {
    return this.#wire.next('a page to load', ({ method, sessionId }) => (
      method === 'Page.loadEventFired' && sessionId === this.#sessionId ? true : undefined
    ));
  }

  async follow(action: () => Promise<void>): Promise<void> {
    await Promise.all([this.#loaded(), action()]);
  }

  async evaluate<Value>(expression: string): Promise<Value> {
    const parameters = { expression: asJson(expression), awaitPromise: true, userGesture: true };
    const { result, exceptionDetails } = await this.call<{
      result: { value?: string };
      exceptionDetails?: { exception?: { description?: string } };
    }>('Runtime.evaluate', parameters);
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description);
    return (result.value === undefined ? undefined : JSON.parse(result.value)) as Value;
  }

  async click(selector: string, times = 1): Promise<void> {
    const at = { ...await this.evaluate<Point>(middleOf(selector)), button: 'left' };
    const counts = Array.from({ length: times }, (_, index) => index + 1);
    await Promise.all(counts.flatMap((clickCount) => ['mousePressed', 'mouseReleased'].map((type) => (
      this.call('Input.dispatchMouseEvent', { type, ...at, clickCount })
    ))));
  }

  async type(text: string): Promise<void> {
    for (const key of text) await this.#strike({ key, text: key });
  }

  press(key: Key): Promise<void> {
    return this.#strike(KEY_EVENTS[key]);
  }

  async #strike(key: object): Promise<void> {
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', ...key });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', ...key, text: undefined });
  }

  // Zoom makes a pixel of the page larger and the window, counted in such pixels, smaller.
  async resize({ width, height, zoom = 1 }: View): Promise<void> {
    await this.call('Emulation.setDeviceMetricsOverride', {
      width: Math.round(width / zoom), height: Math.round(height / zoom), deviceScaleFactor: zoom, mobile: false,
    });
  }

  async screenshot(maxHeight = 4_000): Promise<Uint8Array> {
    const size = await this.evaluate<{ width: number; height: number }>(pictured(maxHeight));
    const clip = { x: 0, y: 0, ...size, scale: 1 };
    const picture = { format: 'png', captureBeyondViewport: true, clip };
    const { data } = await this.call<{ data: string }>('Page.captureScreenshot', picture);
    return Buffer.from(data, 'base64');
  }

  async accessible(wanted: readonly Accessible[]): Promise<readonly number[]> {
    const { nodes } = await this.call<{ nodes: readonly AxNode[] }>('Accessibility.getFullAXTree');
    return wanted.map(({ role, name }) => nodes.filter((node) => (
      !node.ignored && node.role?.value === role && (name === undefined || node.name?.value === name)
    )).length);
  }
}
