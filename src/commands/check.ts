// `pasted check`: whether the service would work, and go on working. Changes nothing. What is looked at is in
// check-files.ts and check-database.ts.

import { isProduction, startWarnings } from '../config/checks.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import type { Config } from '../config/settings.ts';
import { DAY_SECONDS, isoSeconds, unixSeconds } from '../core/time.ts';
import { isExposed, publicPlace } from '../http/listening-place.ts';
import { readServerCertificate } from '../http/tls-files.ts';
import type { CheckDepth } from '../store/verify.ts';
import { checkDatabase } from './check-database.ts';
import { checkFiles } from './check-files.ts';
import type { Run } from './commands.ts';
import { EXIT } from './failures.ts';
import { fail, ok, warn, type Finding } from './findings.ts';

/** Certificates of public authorities are renewed by then; one that is not has nobody who renews it. */
const TLS_EXPIRY_NOTICE_SECONDS = 14 * DAY_SECONDS;

export const run: Run = async (terminal, { options }) => {
  // Bad ones end it here, all of them named, as they would end the service.
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  const nowSeconds = unixSeconds(terminal.clock);
  const depth: CheckDepth = options.has('--full') ? 'full' : 'quick';
  const findings = [
    ...checkSettings(config, warnings),
    ...checkFiles(config.databasePath),
    ...(await checkDatabase(config, depth, nowSeconds)),
    ...checkTls(config, nowSeconds),
  ];
  terminal.stdout.write(options.has('--json') ? jsonOf(findings) : textOf(findings));
  return findings.some(({ level }) => level === 'fail') ? EXIT.failure : EXIT.success;
};

function checkSettings(config: Config, warnings: readonly string[]): Finding[] {
  const mode = isProduction(config) ? 'for production' : 'not for production (NODE_ENV)';
  const doubts = [...warnings, ...startWarnings(config, isExposed(publicPlace(config, 0)))];
  return [ok('settings', `can be used, and are ${mode}`), ...doubts.map((doubt) => warn('settings', doubt))];
}

function checkTls(config: Config, nowSeconds: number): Finding[] {
  if (config.tlsCertPath === '') return [];
  const name = 'TLS certificate';
  try {
    const { expiresAt } = readServerCertificate(config);
    const moment = isoSeconds(expiresAt);
    if (expiresAt <= nowSeconds) return [fail(name, `ran out at ${moment}`)];
    if (expiresAt <= nowSeconds + TLS_EXPIRY_NOTICE_SECONDS) return [warn(name, `runs out soon, at ${moment}`)];
    return [ok(name, `belongs to its key, and is valid until ${moment}`)];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => fail(name, problem));
  }
}

function textOf(findings: readonly Finding[]): string {
  return findings.map(({ level, name, text }) => `${level} ${name}: ${text}\n`).join('');
}

function jsonOf(findings: readonly Finding[]): string {
  const checks = findings.map(({ level, name, text }) => ({ name, level, text }));
  return `${JSON.stringify({ ok: !checks.some(({ level }) => level === 'fail'), checks })}\n`;
}
