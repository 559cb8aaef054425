# Completion of pasted for bash: put it where bash-completion looks, or source it.
_pasted() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$current" = = ]; then current=; elif [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W 'serve config check backup restore prune stats audit paste admin invite pki tls health client openapi completion help version' -- "$current"))
    return
  fi
  case $command in
    paste) command="$command ${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W 'show rm ban unban bans' -- "$current")); return; fi ;;
    admin) command="$command ${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W 'create grant' -- "$current")); return; fi ;;
    invite) command="$command ${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W 'create list withdraw' -- "$current")); return; fi ;;
    pki) command="$command ${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W 'issue list revoke crl ca' -- "$current")); return; fi ;;
    tls) command="$command ${COMP_WORDS[2]}"
      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W 'self-signed' -- "$current")); return; fi ;;
  esac
  case "$command ${COMP_WORDS[3]}" in
    'pki ca renew' | 'pki ca passphrase') [ "$COMP_CWORD" -eq 3 ] || command="$command ${COMP_WORDS[3]}" ;;
  esac
  case "$command $previous" in
    'check --files') _pasted_files; return ;;
    'audit --event') COMPREPLY=($(compgen -W 'cert_issued cert_revoked auth_failure paste_deleted admin_granted ca_password_changed content_banned content_unbanned' -- "$current")); return ;;
    'audit --outcome') COMPREPLY=($(compgen -W 'success failure' -- "$current")); return ;;
    'audit --client-id') :; return ;;
    'audit --after') :; return ;;
    'audit --before') :; return ;;
    'audit --limit') :; return ;;
    'audit --offset') :; return ;;
    'paste ban --note') :; return ;;
    'admin create --out') _pasted_files; return ;;
    'admin create --name') :; return ;;
    'admin create --p12-profile') COMPREPLY=($(compgen -W 'modern compat' -- "$current")); return ;;
    'admin create --password-file') _pasted_files; return ;;
    'invite create --for') :; return ;;
    'invite create --uses') :; return ;;
    'invite create --note') :; return ;;
    'pki issue --common-name') :; return ;;
    'pki issue --out') _pasted_files; return ;;
    'pki issue --p12-profile') COMPREPLY=($(compgen -W 'modern compat' -- "$current")); return ;;
    'pki issue --password-file') _pasted_files; return ;;
    'pki revoke --reason') COMPREPLY=($(compgen -W 'keyCompromise affiliationChanged superseded cessationOfOperation privilegeWithdrawn' -- "$current")); return ;;
    'pki crl --out') _pasted_files; return ;;
    'pki ca passphrase --new-password-file') _pasted_files; return ;;
    'tls self-signed --host') :; return ;;
    'tls self-signed --out-cert') _pasted_files; return ;;
    'tls self-signed --out-key') _pasted_files; return ;;
    'tls self-signed --days') :; return ;;
    'health --url') :; return ;;
    'health --timeout') :; return ;;
    'client --server') :; return ;;
  esac
  if [ "$command" = help ]; then command="${COMP_WORDS[*]:1:COMP_CWORD-1}"; fi
  case $command in
    'serve') COMPREPLY=($(compgen -W '--help' -- "$current")) ;;
    'config') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'check') COMPREPLY=($(compgen -W '--full --files --json --help' -- "$current")) ;;
    'backup') case $current in -*) COMPREPLY=($(compgen -W '--force --json --help' -- "$current")) ;; *) _pasted_files ;; esac ;;
    'restore') case $current in -*) COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;; *) _pasted_files ;; esac ;;
    'prune') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'stats') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'audit') COMPREPLY=($(compgen -W '--event --outcome --client-id --after --before --limit --offset --follow --json --help' -- "$current")) ;;
    'paste show') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'paste rm') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'paste ban') COMPREPLY=($(compgen -W '--note --json --help' -- "$current")) ;;
    'paste unban') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'paste bans') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'admin create') COMPREPLY=($(compgen -W '--out --name --p12-profile --password-file --json --help' -- "$current")) ;;
    'admin grant') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'invite create') COMPREPLY=($(compgen -W '--for --uses --note --json --help' -- "$current")) ;;
    'invite list') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'invite withdraw') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'pki issue') COMPREPLY=($(compgen -W '--common-name --out --p12-profile --password-file --json --help' -- "$current")) ;;
    'pki list') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'pki revoke') COMPREPLY=($(compgen -W '--reason --json --help' -- "$current")) ;;
    'pki crl') COMPREPLY=($(compgen -W '--out --der --help' -- "$current")) ;;
    'pki ca') COMPREPLY=($(compgen -W 'renew passphrase --help' -- "$current")) ;;
    'pki ca renew') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'pki ca passphrase') COMPREPLY=($(compgen -W '--new-password-file --json --help' -- "$current")) ;;
    'tls self-signed') COMPREPLY=($(compgen -W '--host --out-cert --out-key --days --json --help' -- "$current")) ;;
    'health') COMPREPLY=($(compgen -W '--url --timeout --json --help' -- "$current")) ;;
    'client') COMPREPLY=($(compgen -W '--server --help' -- "$current")) ;;
    'openapi') COMPREPLY=($(compgen -W '--help' -- "$current")) ;;
    'completion') COMPREPLY=($(compgen -W 'bash zsh fish --help' -- "$current")) ;;
    'help') COMPREPLY=($(compgen -W 'serve config check backup restore prune stats audit paste admin invite pki tls health client openapi completion help version --help' -- "$current")) ;;
    'version') COMPREPLY=($(compgen -W '--json --help' -- "$current")) ;;
    'help paste') COMPREPLY=($(compgen -W 'show rm ban unban bans' -- "$current")) ;;
    'help admin') COMPREPLY=($(compgen -W 'create grant' -- "$current")) ;;
    'help invite') COMPREPLY=($(compgen -W 'create list withdraw' -- "$current")) ;;
    'help pki') COMPREPLY=($(compgen -W 'issue list revoke crl ca' -- "$current")) ;;
    'help tls') COMPREPLY=($(compgen -W 'self-signed' -- "$current")) ;;
    'help pki ca') COMPREPLY=($(compgen -W 'renew passphrase' -- "$current")) ;;
  esac
}
_pasted_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")
}
complete -F _pasted pasted pastedctl
