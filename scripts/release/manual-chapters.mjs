// What the manual page pasted(1) explains in sentences: paragraphs, in which what is between backticks is typed or read
// as it stands. What follows from a table is manual.mjs.

export const CHAPTERS = [
  {
    title: 'PASTES',
    paragraphs: [
      'Content is kept byte for byte; a form (`curl -F`) is stored as the form that it is, and `Content-Encoding` is refused. ' +
        'A body of type `application/json` is {"content": "..."}; to store a JSON document itself, send it with another type.',
      'The bytes decide what is text: valid UTF-8 is `text/plain`, whatever the request calls it. Other content keeps the ' +
        'type that the request names, if a browser does not run that type: `image/*` but not SVG, `audio/*`, `video/*`, ' +
        '`font/*`, PDF and archives, of at most 64 characters. All else is `application/octet-stream`.',
      'An id is 128 random bits. Whoever knows it may read the paste, so ids are never logged.',
      'A paste expires a fixed time after it was made, however often it is read. `X-Expiry` gives that time in seconds, up ' +
        'to SERVICE_MAX_EXPIRY; anything but a positive integer gives the default of the tier.',
      'A burn-after-read paste is returned by one GET of /{id}/raw. It is deleted on the disk before its first byte is ' +
        'sent, so it is gone also when the transfer breaks off. HEAD and metadata do not burn it.',
      'An unknown id is answered as slowly as a wrong password, so that time does not tell which ids exist. The host checks ' +
        'as many passwords at once as it has processors to spare, and client addresses take turns; beyond that the answer ' +
        'is 503 with `Retry-After: 1`.',
      '`Range`, `If-Range` and `If-None-Match` work on content, but not on burn-after-read pastes. `Repr-Digest` is the ' +
        'SHA-256 of the content. `Accept: text/plain` gives the URL alone when a paste is stored, and lists as lines.',
    ],
  },
  {
    title: 'CERTIFICATES',
    paragraphs: [
      'A certificate of this service\'s own authority says who a caller is; its fingerprint owns the pastes that it stores. ' +
        'Over the service\'s own TLS it is known by its serial: anyone else is anonymous, also with a certificate of another ' +
        'authority, or with one of this authority that is not in the database. A proxy passes it on in `X-SSL-Client-SHA1`, ' +
        '`Client-Cert` or `X-SSL-Client-Cert`; with TLS of its own, the service believes these only beside the right ' +
        '`X-Proxy-Secret`.',
      'The first certificate ever issued is the admin\'s. From then on `POST /register` gives a trusted certificate to ' +
        'whoever solves its proof-of-work. SERVICE_PKI_ENABLED=1 adds the endpoints under /pki/, of which `POST /pki/issue` ' +
        'gives one to anyone who asks, without work, as often as one address may create pastes. Bodies given to both are JSON ' +
        'and must say so. Without a password for the authority\'s key, or with a wrong one, nothing is issued, and ' +
        '`GET /register/challenge` and `GET /` say why.',
      'A revoked or expired certificate makes its holder anonymous from the next request on. A trusted caller has larger ' +
        'limits and no access to the pastes of others. An admin lists everyone\'s pastes, deletes any, and reads `GET /audit`.',
      'An authority that ends within 90 days is a warning in the log and in `pasted check`, within 30 days an error.',
      'Certificates that have expired are removed daily, once no paste, no other certificate and no revocation list refers ' +
        'to them. An admin\'s stay.',
    ],
  },
  {
    title: 'TLS',
    paragraphs: [
      'With SERVICE_TLS_CERT and SERVICE_TLS_KEY the service speaks HTTPS: TLS 1.3, and TLS 1.2 with ECDHE and AEAD alone. ' +
        'Sessions are not resumed: each connection proves anew who it is. The key file must have no password. Files that ' +
        'cannot be used end the start with 78; a certificate with less than 14 days left is a warning.',
    ],
  },
  {
    title: 'SIGNALS',
    paragraphs: [
      'SIGTERM and SIGINT end the service once the requests in flight are answered, after SERVICE_SHUTDOWN_GRACE at most; a ' +
        'second one ends it at once. SIGHUP from the terminal that it was started on does the same as SIGTERM.',
      'Without a terminal, SIGHUP reads the files of TLS again, and the secrets behind <NAME>_FILE and ' +
        '$CREDENTIALS_DIRECTORY: SERVICE_PROXY_SECRET, SERVICE_POW_SECRET (challenges given out before are refused, and ' +
        'clients ask again) and SERVICE_PKI_CA_PASSWORD (if it opens the stored key). One line in the log, `reloaded`, names ' +
        'what changed. What cannot be used is logged by name, and stays as it was. Open connections go on. Under systemd ' +
        'credentials are copies made at the start: a new secret or certificate needs a restart there.',
    ],
  },
  {
    title: 'STORAGE',
    paragraphs: [
      'SERVICE_MAX_STORAGE bounds the database file. Beside content that counts rows (0.2 to 0.9 KiB for a small paste), ' +
        'uploads under way, and deleted or replaced content that someone still reads; so an update needs room for its new ' +
        'content beside the old. Certificates and audit entries count, and are not refused for it. Beside the file lie a ' +
        'write-ahead log of up to 16 MiB and 16 MiB in reserve.',
      'On a full disk reading, deleting, burning and revoking go on. Whatever stores is answered 507, certificates too, ' +
        'until there is room.',
      'Expired pastes cannot be read from their second on, and are removed within the hour. Used challenges go after an ' +
        'hour, audit entries after SERVICE_AUDIT_RETENTION.',
      'A newer version brings the database to its own schema when it starts, each step in a transaction; what a crash ' +
        'interrupts goes on at the next start. That can take some seconds for a million pastes, and temporary files. There ' +
        'is no way back: an older version refuses the database with 78, and leaves it as it is.',
      'After a restore, what was deleted, read, burned or revoked since the backup is as it was then: burned pastes can be ' +
        'read once more, and revoked certificates are valid until they are revoked again. Holders of certificates issued ' +
        'since need new ones. Killed at any moment, `pasted restore` leaves the old database or the new one. While a backup ' +
        'is made, the write-ahead log grows by what is written.',
    ],
  },
  {
    title: 'SECURITY',
    paragraphs: [
      'Trusted are whoever runs the host, the proxy that knows the secret, and the admin.',
      'Deleted and burned content is overwritten in the database at once, and leaves the write-ahead log within about a ' +
        'minute. Passwords are kept as PBKDF2-HMAC-SHA256 of 600 000 iterations. Ids, content, passwords, tokens and keys ' +
        'are never in logs. Files have mode 0600.',
      'A page of another site cannot make a visitor\'s browser create, change or revoke anything: what a browser marks as ' +
        'cross-site (`Sec-Fetch-Site`, or an `Origin` of another host) is refused, but for GET, HEAD and OPTIONS.',
      'What strangers can make grow is bounded: memory for each upload, tables of addresses, queues, and with ' +
        'SERVICE_MAX_STORAGE the database. Limits count by address (IPv6 by /64), so a flood from many networks at once is ' +
        'slowed down by the rising difficulty alone.',
      'Content is not encrypted at rest: `pastec --encrypt` does that before it is sent. A stolen key acts for its owner ' +
        'until its certificate is revoked or expires.',
    ],
  },
];
