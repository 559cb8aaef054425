// Which states a paste may be in, given everything that was asked and answered about it. An operation that was
// acknowledged has happened, one that was refused has not, and one without an answer may or may not have. So a paste
// has a set of possible states, and what is seen must be one of them. What is seen also settles which one, because what
// was cut off does not happen later. The requests come from load.ts and history.ts; this file does no I/O.

/** The number of the content that the paste has, from 1, or that there is no paste. */
export type State = number | 'gone';

/** `read` gives the content, and burns a burn paste; `look` gives the metadata. */
export type Action = 'create' | 'read' | 'look' | 'update' | 'delete';

/** What a create or an update brings. */
export interface Terms {
  readonly bytes?: number;
  /** Of a create. */
  readonly ttlSeconds?: number | undefined;
}

/** What came of an action. */
export type Seen =
  | { readonly kind: 'done'; readonly version?: number | undefined; readonly id?: string; readonly expiresAt?: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'unknown' }
  /** An answer that is wrong whatever the state. */
  | { readonly kind: 'wrong'; readonly why: string };

/** One action under way. */
export interface Attempt {
  readonly action: Action;
  /** The content that a create or an update brings. */
  readonly version: number;
  readonly startMs: number;
  readonly changes: boolean;
}

export interface PasteModel {
  readonly label: string;
  readonly burn: boolean;
  /** Undefined until its creation was acknowledged. */
  id(): string | undefined;
  /** The size of that content. */
  bytesOf(version: number): number;
  possible(): readonly State[];
  /** Whether its time to live was over at that moment. */
  hasExpiredAt(unixMs: number): boolean;
  /** Two actions that change the same paste must not overlap; other actions may. */
  begin(action: Action, unixMs: number, bytes?: number): Attempt;
  /** What must hold and does not, in words; undefined when all is well. */
  end(attempt: Attempt, seen: Seen, unixMs: number): string | undefined;
  /** The paste was found so in the database, after a restart or in a restored backup; nothing may be under way. */
  settle(state: State): void;
}

interface Watched extends Attempt {
  /** The states that were possible at any moment since the action began. */
  readonly seenPossible: Set<State>;
  /** The states that were possible before it began. */
  readonly before: readonly State[];
  /** Whether no other change was under way at any moment since it began. */
  isUndisturbed: boolean;
}

export interface ModelOptions {
  readonly burn?: boolean;
  /** Whether 5xx is an acceptable answer, as on a disk that fails. */
  readonly refusable?: boolean;
  /** Whether a request that was never answered may still be carried out after a look, as in a cluster. */
  readonly isLate?: boolean;
}

export function createPasteModel(label: string, options: ModelOptions = {}): PasteModel {
  const { burn = false, refusable = false, isLate = false } = options;
  let possible: State[] = ['gone'];
  let id: string | undefined;
  let expiresAt = Infinity;
  const sizes: number[] = [0];
  const underWay = new Set<Watched>();

  function allow(states: readonly State[]): void {
    possible = [...new Set(states)];
    for (const { seenPossible } of underWay) for (const state of possible) seenPossible.add(state);
  }

  const hasExpiredAt = (unixMs: number): boolean => Math.floor(unixMs / 1000) >= expiresAt;

  function begin(action: Action, unixMs: number, bytes = 0): Attempt {
    const before = possible;
    const brings = action === 'create' || action === 'update';
    if (brings) sizes.push(bytes);
    const version = brings ? sizes.length - 1 : 0;
    const changes = isChange(action, burn);
    const isUndisturbed = ![...underWay].some((other) => other.changes);
    const attempt = { action, version, startMs: unixMs, before, seenPossible: new Set(before), changes, isUndisturbed };
    if (changes) for (const other of underWay) other.isUndisturbed = false;
    underWay.add(attempt);
    if (changes) allow([...before, after(attempt)]);
    return attempt;
  }

  function knownTo({ changes, before, isUndisturbed, seenPossible }: Watched): ReadonlySet<State> {
    if (changes) return new Set(before);
    return isUndisturbed && !isLate ? new Set(possible) : seenPossible;
  }

  /** Until the next change it stays as it was seen. */
  function narrow({ changes, isUndisturbed }: Watched, isSeen: (state: State) => boolean): void {
    if (!changes && isUndisturbed && !isLate) allow(possible.filter(isSeen));
  }

  function end(attempt: Attempt, seen: Seen, unixMs: number): string | undefined {
    const watched = attempt as Watched;
    underWay.delete(watched);
    switch (seen.kind) {
      case 'wrong':
        return `${attempt.action} of ${label}: ${seen.why}`;
      case 'unknown':
        return undefined;
      case 'refused':
        if (watched.changes) allow(watched.before);
        return refusable ? undefined : `${attempt.action} of ${label} was refused with ${seen.status}`;
      case 'absent':
        return endAbsent(watched, unixMs);
      case 'done':
        return endDone(watched, seen);
    }
  }

  function endAbsent(watched: Watched, unixMs: number): string | undefined {
    const known = knownTo(watched);
    if (!known.has('gone') && !hasExpiredAt(unixMs)) {
      return `${label} is lost: ${watched.action} found nothing, and ${list(known)} was possible`;
    }
    // The database has an expired paste until cleanup removes it.
    if (hasExpiredAt(unixMs)) return undefined;
    if (watched.changes) allow(['gone']);
    narrow(watched, (state) => state === 'gone');
    return undefined;
  }

  function endDone(watched: Watched, seen: Extract<Seen, { kind: 'done' }>): string | undefined {
    const { action } = watched;
    if (action === 'create') {
      id = seen.id;
      expiresAt = seen.expiresAt ?? Infinity;
      allow([watched.version]);
      return undefined;
    }
    const known = knownTo(watched);
    if (watched.changes) allow([after(watched)]);
    if (hasExpiredAt(watched.startMs)) return `${label} had expired, and ${action} found it`;
    if (![...known].some((state) => state !== 'gone')) return `${label} is back: ${action} found it, and it was gone`;
    if (action === 'read' && !known.has(seen.version ?? 0)) {
      return `${label} read as version ${seen.version}, and ${list(known)} was possible`;
    }
    narrow(watched, (state) => (action === 'read' ? state === seen.version : state !== 'gone'));
    return undefined;
  }

  return {
    label,
    burn,
    id: () => id,
    bytesOf: (version) => sizes[version] ?? 0,
    possible: () => possible,
    hasExpiredAt,
    begin,
    end,
    settle: (state) => allow([state]),
  };
}

export function isChange(action: Action, burn: boolean): boolean {
  return action !== 'look' && (action !== 'read' || burn);
}

/** The state in which an action that changes something leaves its paste. */
function after({ action, version }: Attempt): State {
  return action === 'create' || action === 'update' ? version : 'gone';
}

function list(states: Iterable<State>): string {
  return [...states].join(' or ');
}

/** Text that repeats the label of its paste, its version and its size, so that nothing else can be mistaken for it. */
export function contentOf(label: string, version: number, bytes: number): Buffer {
  return Buffer.alloc(bytes, `${label}.${version}.${bytes};`);
}

/** The state in which the paste was found in a database; undefined when that content was never asked for. */
export function stateOf(
  model: Pick<PasteModel, 'label' | 'bytesOf'>, stored: { readonly content: Uint8Array } | undefined,
): State | undefined {
  return stored === undefined ? 'gone' : versionOf(model, stored.content);
}

/** Which content of that paste this is; undefined when it differs from each of them, even by a byte. */
export function versionOf(model: Pick<PasteModel, 'label' | 'bytesOf'>, content: Uint8Array): number | undefined {
  const begins = Buffer.from(content.subarray(0, 100)).toString('latin1');
  // Making the content of every candidate would take long.
  if (!begins.startsWith(`${model.label}.`.slice(0, begins.length))) return undefined;
  const [, version = '0'] = begins.split('.');
  const known = contentOf(model.label, Number(version), model.bytesOf(Number(version)));
  return known.equals(content) ? Number(version) : undefined;
}
