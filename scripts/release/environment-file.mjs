// /etc/pasted/pasted.env of the Debian package: every setting, commented out, with its meaning and its default
// (EnvironmentFile= of systemd.exec(5)). It holds no secret, since everyone may read it.

const HEAD = `\
# Settings of pasted.service, each with its default. To change one, take the # in front of its name away, and restart
# the service. The journal says which ones cannot be used.
#
# Secrets do not belong here: each is a file of its name in /etc/pasted/credentials, of mode 0600.
`;

// The units set these, so the defaults differ from the service's own.
const UNIT_DEFAULTS = { SERVICE_DB: '/var/lib/pasted/pasted.db', NODE_ENV: 'production' };

/** The file's text, from the table of settings as product.mjs completes it. */
export function environmentFile(settings) {
  return [HEAD, ...settings.map(settingLines)].join('\n');
}

function settingLines({ kind, name, fallback, unit, shownFallback, meaning }) {
  const comment = `# ${meaning.replaceAll('`', '')} [${unit}]`;
  if (kind === 'secret') return `${comment}\n# A secret: /etc/pasted/credentials/${name}\n`;
  return `${comment}\n#${name}=${UNIT_DEFAULTS[name] ?? (fallback === '' ? '' : shownFallback)}\n`;
}
