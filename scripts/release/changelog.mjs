// CHANGELOG.md as data: which versions there were, when, with which changes; and the time that everything in a release
// gets, which must not come from the clock.

import { ReleaseError, wrapped } from './files.mjs';

// 1985-10-26T08:15:00Z, the time that `npm pack` gives to files: nobody takes it for a real one.
const UNRELEASED_SECONDS = 499_162_500;

/**
 * The versions, newest first, each with its date (in seconds since the epoch, at midnight UTC; undefined when it has
 * none) and the texts of its changes. The changes under `Unreleased` belong to the version below as long as that has no
 * date. Refuses a newest version other than `version`.
 */
export function readChangelog(text, version) {
  const entries = text.split(/^## /m).slice(1).map(readEntry);
  const [latest, coming] = entries;
  if (latest?.version === 'Unreleased' && coming !== undefined && coming.seconds === undefined) {
    entries.splice(0, 2, { ...coming, changes: [...latest.changes, ...coming.changes] });
  }
  if (entries[0]?.version !== version) {
    throw new ReleaseError(`CHANGELOG.md begins with ${entries[0]?.version}, and package.json says ${version}`);
  }
  return entries;
}

// A heading is `1.5.0 (2026-11-30)`; until a version is released, the parentheses hold something other than a date.
function readEntry(section) {
  const [heading = '', ...body] = section.split('\n');
  const [, version, date] = /^(\S+)(?: \((\d{4}-\d{2}-\d{2})\))?/.exec(heading) ?? [];
  const isDate = date === undefined || new Date(date).toJSON()?.startsWith(date);
  if (!isDate) throw new ReleaseError(`CHANGELOG.md: ${date} is no date`);
  // Text after an empty line that is not indented is the heading of the changes below it.
  const changes = body.join('\n').split(/^- /m).slice(1).map((change) => change.split(/\n\n(?! )/)[0].trim());
  return { version, seconds: date === undefined ? undefined : Date.parse(date) / 1000, changes };
}

/**
 * The modification time of everything in the release: SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/), or
 * else the date in the changelog.
 */
export function releaseSeconds([newest], sourceDateEpoch = '') {
  if (sourceDateEpoch === '') return newest.seconds ?? UNRELEASED_SECONDS;
  if (!/^\d{1,10}$/.test(sourceDateEpoch)) throw new ReleaseError('SOURCE_DATE_EPOCH: expected seconds since 1970');
  return Number(sourceDateEpoch);
}

/** The changelog of a package in Debian's form (Debian Policy 4.4); `seconds` is the date of an entry that has none. */
export function debianChangelog(name, entries, maintainer, seconds) {
  return entries.map((entry) => [
    `${name} (${entry.version}) unstable; urgency=medium`,
    '',
    ...entry.changes.flatMap(changeLines),
    '',
    ` -- ${maintainer}  ${mailDate(entry.seconds ?? seconds)}`,
    '',
  ].join('\n')).join('\n');
}

function changeLines(change) {
  const [first, ...others] = wrapped(change, 76);
  return [`  * ${first}`, ...others.map((line) => `    ${line}`)];
}

/** RFC 5322, 3.3. */
function mailDate(seconds) {
  return new Date(seconds * 1000).toUTCString().replace('GMT', '+0000');
}
