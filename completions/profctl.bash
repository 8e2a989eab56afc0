# SPDX-License-Identifier: Apache-2.0
# bash completion of profctl, which says itself what may follow.

_profctl() {
    local word line
    local -a words=()
    # bash takes "--by=function" apart; to profctl that is "--by function".
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        [ "$word" = = ] || words+=("$word")
    done
    [ "${COMP_WORDS[COMP_CWORD]}" != = ] || words+=("")
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files)
            compopt -o filenames
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${words[-1]}")
            ;;
        :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "${words[-1]}") ;;
        *) COMPREPLY+=("$(printf %q "${line%%$'\t'*}")") ;; # bash puts it on the line as it is
        esac
    done < <("${COMP_WORDS[0]}" --complete "${words[@]}" 2>/dev/null)
}

complete -F _profctl profctl
