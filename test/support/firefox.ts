// Firefox over WebDriver BiDi (https://w3c.github.io/webdriver-bidi/).

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Accessible, asJson, type Fields, type Key, type Make, middleOf, NAMED_HOST, openedTabs, pictured, type Point, saving,
  type Tab, type View, Wire, type WireEvent,
} from './browser-driver.ts';
import { run } from './programs.ts';

const PREFERENCES = {
  // Firefox looks for no updates, and reports, synchronizes and fetches nothing by itself.
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'app.update.auto': false,
  'browser.newtabpage.enabled': false,
  'browser.newtabpage.activity-stream.feeds.system.topstories': false,
  'browser.ping-centre.telemetry': false,
  'browser.region.network.url': '',
  'browser.safebrowsing.blockedURIs.enabled': false,
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.search.update': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage': 'about:blank',
  'browser.startup.page': 0,
  'captivedetect.canonicalURL': '',
  'datareporting.healthreport.uploadEnabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'dom.push.connection.enabled': false,
  'dom.security.https_first': false,
  'extensions.getAddons.cache.enabled': false,
  'extensions.systemAddon.update.enabled': false,
  'extensions.update.enabled': false,
  'identity.fxaccounts.enabled': false,
  'media.gmp-manager.updateEnabled': false,
  'media.gmp-manager.url': 'http://127.0.0.1:9/',
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'network.dns.disablePrefetch': true,
  'network.prefetch-next': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'toolkit.telemetry.enabled': false,
  'toolkit.telemetry.server': '',
  'toolkit.telemetry.unified': false,
  // It prepares nothing for later, and examines no page for what its reader has not asked for.
  'browser.ml.enable': false,
  'browser.newtab.preload': false,
  'browser.pagethumbnails.capturing_disabled': true,
  'browser.sessionstore.interval': 3_600_000,
  'browser.sessionstore.resume_from_crash': false,
  'browser.translations.enable': false,
  'dom.ipc.processPrelaunch.enabled': false,
  'reader.parse-on-load.enabled': false,
  // It asks no question about a form, a download or a certificate.
  'security.warn_submit_secure_to_insecure': false,
  'browser.download.alwaysOpenPanel': false,
  'browser.download.always_ask_before_handling_new_types': false,
  'security.default_personal_cert': 'Select Automatically',
  // JSON is shown as it is, without a viewer.
  'devtools.jsonview.enabled': false,
  'intl.accept_languages': 'en-US',
} as const;

export const firefox: Make = {
  ready: /WebDriver BiDi listening on (ws:\S+)/,

  prepare({ profile, proxyPort, scheme, bundle }) {
    if (bundle !== undefined) keepCertificate(profile, bundle);
    const preferences = {
      ...PREFERENCES,
      'layout.css.prefers-color-scheme.content-override': scheme === 'dark' ? 0 : 1,
      'network.proxy.type': 1,
      'network.proxy.http': '127.0.0.1',
      'network.proxy.http_port': proxyPort,
      'network.proxy.ssl': '127.0.0.1',
      'network.proxy.ssl_port': proxyPort,
      'network.proxy.no_proxies_on': NAMED_HOST,
      'network.dns.localDomains': NAMED_HOST,
    };
    const lines = Object.entries(preferences).map((entry) => `user_pref(${JSON.stringify(entry).slice(1, -1)});\n`);
    writeFileSync(join(profile, 'user.js'), lines.join(''));
    return ['--headless', '--no-remote', '--remote-debugging-port', '0', '--profile', profile];
  },

  async drive(url, setup) {
    const wire = await Wire.open(`${url}/session`);
    await wire.call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
    await wire.call('session.subscribe', {
      events: [
        'browsingContext.load', 'browsingContext.downloadWillBegin', 'browsingContext.downloadEnd', 'log.entryAdded',
        'network.beforeRequestSent',
      ],
    });
    const downloadBehavior = { type: 'allowed', destinationFolder: setup.downloads };
    await wire.call('browser.setDownloadBehavior', { downloadBehavior });
    const ids = async () => {
      const { contexts } = await wire.call<{ contexts: readonly { context: string }[] }>('browsingContext.getTree');
      return contexts.map(({ context }) => context);
    };
    const own = new Set(await ids());
    return {
      newTab: () => newTab(wire, own),
      opened: openedTabs(ids, own, (context) => attach(wire, context)),
      saving: (action) => saving(wire, setup, SAVING, action),
      close: () => wire.call('browser.close'),
    };
  },
};

/** Puts the bundle into the profile's database of certificates and keys, with the programs of NSS. */
function keepCertificate(profile: string, bundle: Uint8Array): void {
  writeFileSync(join(profile, 'client.p12'), bundle);
  const steps = [
    ['certutil', '-N', '-d', 'sql:.', '--empty-password'], ['pk12util', '-i', 'client.p12', '-d', 'sql:.', '-W', ''],
  ] as const;
  for (const [program, ...args] of steps) {
    const { status, output } = run(program, args, profile);
    if (status !== 0) throw new Error(`${program}: ${output}`);
  }
}

const SAVING = {
  begins: 'browsingContext.downloadWillBegin',
  ends: 'browsingContext.downloadEnd',
  isWhole: ({ status }: Fields) => status === 'complete',
};

async function newTab(wire: Wire, own: Set<string>): Promise<Tab> {
  const { context } = await wire.call<{ context: string }>('browsingContext.create', { type: 'tab' });
  own.add(context);
  return attach(wire, context);
}

async function attach(wire: Wire, context: string): Promise<Tab> {
  const tab = new FirefoxTab(wire, context);
  await tab.resize({ width: 1200, height: 800 });
  return tab;
}

type Evaluated =
  | { readonly type: 'success'; readonly result: { readonly value?: string } }
  | { readonly type: 'exception'; readonly exceptionDetails: { readonly text: string } };

const KEYS: Readonly<Record<Key, string>> = { Tab: '\ue004', Enter: '\ue006' };

class FirefoxTab implements Tab {
  readonly requests: string[] = [];
  readonly messages: string[] = [];
  readonly #wire: Wire;
  readonly #context: string;

  constructor(wire: Wire, context: string) {
    this.#wire = wire;
    this.#context = context;
    wire.listen((event) => this.#note(event));
  }

  #note({ method, params }: WireEvent): void {
    if (method === 'network.beforeRequestSent' && params.context === this.#context) {
      this.requests.push((params.request as { url: string }).url);
    } else if (method === 'log.entryAdded' && (params.source as { context?: string }).context === this.#context) {
      this.messages.push(String(params.text));
    }
  }

  #call<Result>(method: string, params = {}): Promise<Result> {
    return this.#wire.call<Result>(method, { context: this.#context, ...params });
  }

  async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const fields = Object.entries(headers).map(([name, value]) => ({ name, value: { type: 'string', value } }));
    await this.#wire.call('network.setExtraHeaders', { headers: fields, contexts: [this.#context] });
    await this.#call('browsingContext.navigate', { url, wait: 'complete' });
  }

  async follow(action: () => Promise<void>): Promise<void> {
    const loaded = this.#wire.next('a page to load', ({ method, params }) => (
      method === 'browsingContext.load' && params.context === this.#context ? true : undefined
    ));
    await Promise.all([loaded, action()]);
  }

  async evaluate<Value>(expression: string): Promise<Value> {
    const evaluated = await this.#wire.call<Evaluated>('script.evaluate', {
      expression: asJson(expression),
      target: { context: this.#context },
      awaitPromise: true,
      userActivation: true,
    });
    if (evaluated.type === 'exception') throw new Error(evaluated.exceptionDetails.text);
    const { value } = evaluated.result;
    return (value === undefined ? undefined : JSON.parse(value)) as Value;
  }

  async click(selector: string, times = 1): Promise<void> {
    const at = await this.evaluate<Point>(middleOf(selector));
    const once = [{ type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
    const actions = [{ type: 'pointerMove', ...at }, ...Array.from({ length: times }, () => once).flat()];
    await this.#perform({ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions });
  }

  type(text: string): Promise<void> {
    return this.#strike([...text]);
  }

  press(key: Key): Promise<void> {
    return this.#strike([KEYS[key]]);
  }

  #strike(keys: readonly string[]): Promise<void> {
    const actions = keys.flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]);
    return this.#perform({ type: 'key', id: 'keyboard', actions });
  }

  #perform(source: object): Promise<void> {
    return this.#call('input.performActions', { actions: [source] });
  }

  // Zoom makes a pixel of the page larger and the window, counted in such pixels, smaller.
  async resize({ width, height, zoom = 1 }: View): Promise<void> {
    const viewport = { width: Math.round(width / zoom), height: Math.round(height / zoom) };
    await this.#call('browsingContext.setViewport', { viewport, devicePixelRatio: zoom });
  }

  async screenshot(maxHeight = 4_000): Promise<Uint8Array> {
    const size = await this.evaluate<{ width: number; height: number }>(pictured(maxHeight));
    const clip = { type: 'box', x: 0, y: 0, ...size };
    const picture = { origin: 'document', clip };
    const { data } = await this.#call<{ data: string }>('browsingContext.captureScreenshot', picture);
    return Buffer.from(data, 'base64');
  }

  async accessible(wanted: readonly Accessible[]): Promise<readonly number[]> {
    return Promise.all(wanted.map(async (value) => {
      const locator = { type: 'accessibility', value };
      const { nodes } = await this.#call<{ nodes: readonly object[] }>('browsingContext.locateNodes', { locator });
      return nodes.length;
    }));
  }
}
