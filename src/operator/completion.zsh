#compdef pasted pastedctl
# Completion of pasted for zsh: put it as _pasted into a folder of $fpath.
_pasted() {
  local -a offered
  local command=$words[2] previous=$words[CURRENT-1]
  if (( CURRENT == 2 )); then
    offered=('serve:run the service (the default)' 'config:show every setting in force and where it comes from' 'check:find out whether the service works, and will go on working' 'backup:write a verified copy of the database' 'restore:put a backup in the place of the database' 'prune:remove what has expired, and give its room back' 'stats:count what the service holds' 'audit:show the audit log' 'paste:show, rm, ban, unban, bans' 'admin:create, grant' 'invite:create, list, withdraw' 'pki:issue, list, revoke, crl, ca' 'tls:self-signed' 'health:ask a running service whether it is healthy' 'client:print the command-line client' 'openapi:print a description of the API, for programs' 'completion:print a script that completes these commands in a shell' 'help:explain the commands and settings, or one command' 'version:print the version')
    _describe command offered
    return
  fi
  case $command in
    paste) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=('show:show what a paste is, without its content' 'rm:remove pastes, whoever they belong to' 'ban:refuse content from now on, and remove every paste that has it' 'unban:take content again' 'bans:list the content that is refused'); _describe command offered; return; fi ;;
    admin) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=('create:issue the first certificate, which is the admin'\''s, before anyone else can get it' 'grant:make the holder of a certificate an admin'); _describe command offered; return; fi ;;
    invite) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=('create:invite someone to register' 'list:list the invitations' 'withdraw:take an invitation back'); _describe command offered; return; fi ;;
    pki) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=('issue:issue a certificate, whoever else may register' 'list:list every certificate' 'revoke:revoke a certificate for ever' 'crl:write the certificate revocation list' 'ca:print the certificate of the authority'); _describe command offered; return; fi ;;
    tls) command="$command $words[3]"
      if (( CURRENT == 3 )); then offered=('self-signed:make a certificate and key for HTTPS without a public authority'); _describe command offered; return; fi ;;
  esac
  case "$command $words[4]" in
    'pki ca renew' | 'pki ca passphrase') (( CURRENT == 4 )) || command="$command $words[4]" ;;
  esac
  case $words[CURRENT] in
    --*=*) previous=${words[CURRENT]%%=*}; compset -P '*=' ;;
  esac
  case "$command $previous" in
    'check --files') _files; return ;;
    'audit --event') offered=('cert_issued' 'cert_revoked' 'auth_failure' 'paste_deleted' 'admin_granted' 'ca_password_changed' 'content_banned' 'content_unbanned'); _describe value offered; return ;;
    'audit --outcome') offered=('success' 'failure'); _describe value offered; return ;;
    'audit --client-id') :; return ;;
    'audit --after') :; return ;;
    'audit --before') :; return ;;
    'audit --limit') :; return ;;
    'audit --offset') :; return ;;
    'paste ban --note') :; return ;;
    'admin create --out') _files; return ;;
    'admin create --name') :; return ;;
    'admin create --p12-profile') offered=('modern' 'compat'); _describe value offered; return ;;
    'admin create --password-file') _files; return ;;
    'invite create --for') :; return ;;
    'invite create --uses') :; return ;;
    'invite create --note') :; return ;;
    'pki issue --common-name') :; return ;;
    'pki issue --out') _files; return ;;
    'pki issue --p12-profile') offered=('modern' 'compat'); _describe value offered; return ;;
    'pki issue --password-file') _files; return ;;
    'pki revoke --reason') offered=('keyCompromise' 'affiliationChanged' 'superseded' 'cessationOfOperation' 'privilegeWithdrawn'); _describe value offered; return ;;
    'pki crl --out') _files; return ;;
    'pki ca passphrase --new-password-file') _files; return ;;
    'tls self-signed --host') :; return ;;
    'tls self-signed --out-cert') _files; return ;;
    'tls self-signed --out-key') _files; return ;;
    'tls self-signed --days') :; return ;;
    'health --url') :; return ;;
    'health --timeout') :; return ;;
    'client --server') :; return ;;
  esac
  if [[ $command = help ]]; then command="${(j: :)words[2,CURRENT-1]}"; fi
  case $command in
    'serve') offered=('--help:print the help'); _describe -o option offered ;;
    'config') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'check') offered=('--full:check every index against its table, and every content against its digest, as well' '--files:only compare the program with this list of a release (.cdx.json)' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'backup') _files; offered=('--force:replace FILE when there is one' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'restore') _files; offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'prune') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'stats') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'audit') offered=('--event:only this event' '--outcome:only what ended so' '--client-id:only what the holder of this certificate caused; operator for commands about pastes' '--after:only what is newer' '--before:only what is older' '--limit:at most so many entries, 100 by default' '--offset:leave out so many of the newest' '--follow:print entries as they are written' '--json:print the answer of GET /audit as one JSON object' '--help:print the help'); _describe -o option offered ;;
    'paste show') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'paste rm') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'paste ban') offered=('--note:why, for `pasted paste bans`; replaces the note of an earlier ban' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'paste unban') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'paste bans') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'admin create') offered=('--out:a new file for the bundle; - is standard output' '--name:common name of the certificate; admin by default' '--p12-profile:modern (the default), or compat for older devices' '--password-file:file that holds the bundle'\''s password, - for standard input; none by default' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'admin grant') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'invite create') offered=('--for:how long it is good: 30m, 12h, 7d (the default), 365d at most' '--uses:for how many registrations; 1 by default, 1000 at most' '--note:what `pasted invite list` shows beside it, such as for whom it is' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'invite list') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'invite withdraw') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'pki issue') offered=('--common-name:common name of the certificate' '--out:a new file for the bundle; - is standard output' '--p12-profile:modern (the default), or compat for older devices' '--password-file:file that holds the bundle'\''s password, - for standard input; none by default' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'pki list') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'pki revoke') offered=('--reason:why; the list says so' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'pki crl') offered=('--out:where to write it; - is standard output, the default' '--der:write DER instead of PEM' '--help:print the help'); _describe -o option offered ;;
    'pki ca') offered=('renew:let the authority last longer' 'passphrase:give the key of the authority a new password'); _describe argument offered; offered=('--help:print the help'); _describe -o option offered ;;
    'pki ca renew') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'pki ca passphrase') offered=('--new-password-file:file that holds the new password; - is standard input' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'tls self-signed') offered=('--host:what clients call the server: host names, *.names and addresses, separated by commas' '--out-cert:where to write the certificate; server.crt by default' '--out-key:where to write the key; server.key by default' '--days:how long it is valid; 365 by default, 824 at most' '--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'health') offered=('--url:the address of the service, or unix: and the path of its socket' '--timeout:how long to wait for the answer; 5 by default' '--json:print the answer of GET /health as one JSON object' '--help:print the help'); _describe -o option offered ;;
    'client') offered=('--server:the address that the service is reached at' '--help:print the help'); _describe -o option offered ;;
    'openapi') offered=('--help:print the help'); _describe -o option offered ;;
    'completion') offered=('bash' 'zsh' 'fish'); _describe argument offered; offered=('--help:print the help'); _describe -o option offered ;;
    'help') offered=('serve:run the service (the default)' 'config:show every setting in force and where it comes from' 'check:find out whether the service works, and will go on working' 'backup:write a verified copy of the database' 'restore:put a backup in the place of the database' 'prune:remove what has expired, and give its room back' 'stats:count what the service holds' 'audit:show the audit log' 'paste:show, rm, ban, unban, bans' 'admin:create, grant' 'invite:create, list, withdraw' 'pki:issue, list, revoke, crl, ca' 'tls:self-signed' 'health:ask a running service whether it is healthy' 'client:print the command-line client' 'openapi:print a description of the API, for programs' 'completion:print a script that completes these commands in a shell' 'help:explain the commands and settings, or one command' 'version:print the version'); _describe argument offered; offered=('--help:print the help'); _describe -o option offered ;;
    'version') offered=('--json:print one JSON object' '--help:print the help'); _describe -o option offered ;;
    'help paste') offered=('show:show what a paste is, without its content' 'rm:remove pastes, whoever they belong to' 'ban:refuse content from now on, and remove every paste that has it' 'unban:take content again' 'bans:list the content that is refused'); _describe argument offered; offered=(); _describe -o option offered ;;
    'help admin') offered=('create:issue the first certificate, which is the admin'\''s, before anyone else can get it' 'grant:make the holder of a certificate an admin'); _describe argument offered; offered=(); _describe -o option offered ;;
    'help invite') offered=('create:invite someone to register' 'list:list the invitations' 'withdraw:take an invitation back'); _describe argument offered; offered=(); _describe -o option offered ;;
    'help pki') offered=('issue:issue a certificate, whoever else may register' 'list:list every certificate' 'revoke:revoke a certificate for ever' 'crl:write the certificate revocation list' 'ca:print the certificate of the authority'); _describe argument offered; offered=(); _describe -o option offered ;;
    'help tls') offered=('self-signed:make a certificate and key for HTTPS without a public authority'); _describe argument offered; offered=(); _describe -o option offered ;;
    'help pki ca') offered=('renew:let the authority last longer' 'passphrase:give the key of the authority a new password'); _describe argument offered; offered=(); _describe -o option offered ;;
  esac
}
if [ "$funcstack[1]" = _pasted ]; then _pasted "$@"; else compdef _pasted pasted pastedctl; fi
