// service/audit.ts: an event, and the log line that announces it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEntry } from '../../src/core/events.ts';
import { createAudit } from '../../src/pastes/identity.ts';
import { movableClock } from '../support/clock.ts';
import { CREATED_AT } from '../support/store.ts';

test('event and announce: who caused it is said where it is known, and a failure is a warning', () => {
  const logged: LogEntry[] = [];
  const audit = createAudit({ clock: movableClock(), log: (entry) => logged.push(entry) });
  const known = { fingerprint: 'a'.repeat(40), clientAddress: '192.0.2.1' };
  const client = { clientId: known.fingerprint, clientIp: known.clientAddress };
  const details = { paste: 'abc' };
  const event = audit.event('paste_deleted', 'success', known, details);
  assert.deepEqual(event, { time: CREATED_AT, event: 'paste_deleted', outcome: 'success', ...client, details });
  audit.announce(event);
  audit.announce(audit.event('auth_failure', 'failure', { fingerprint: null, clientAddress: null }, {}));
  assert.deepEqual(logged, [
    { level: 'info', logger: 'audit', event: 'paste_deleted', outcome: 'success', ...client, details },
    { level: 'warning', logger: 'audit', event: 'auth_failure', outcome: 'failure', details: {} },
  ]);
});
