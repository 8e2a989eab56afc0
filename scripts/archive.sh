# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by what takes a whole system, or packages of another release, from where this machine's apt takes
# its own. Asks apt, so it holds for both formats of its sources. Needs `set -euo pipefail`.

# archive_lines RELEASE: `URI SUITE COMPONENT FILE` of every archive of that release that apt here knows; FILE is
# where its entry stands.
archive_lines() {
    # The dollars are apt's.
    # shellcheck disable=SC2016
    apt-get indextargets 'Created-By: Packages' \
        --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)' |
        awk -v suite="$1" 'index($2, suite) == 1 { sub(/:[0-9]+$/, "", $4); print }' | sort -u
}

# archive_find RELEASE: sets archive_mirror to the URI of the release's own archive, and archive_keyring to what its
# signature is checked with. Status 1 and a sentence when there is none.
archive_find() {
    local entry
    read -r archive_mirror entry < <(archive_lines "$1" |
        awk -v suite="$1" '$2 == suite && $3 == "main" { print $1, $4 }') || {
        echo "$0: apt here knows no archive of $1" >&2
        return 1
    }
    archive_keyring=$(sed -nE 's/.*[Ss]igned-[Bb]y[:=][[:space:]]*(\/[^] ]+).*/\1/p' "$entry" | head -n 1)
    if [ ! -e "$archive_keyring" ]; then
        archive_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    fi
    if [ ! -e "$archive_keyring" ]; then
        echo "$0: no keyring to check the archive with (apt-get install debian-archive-keyring)" >&2
        return 1
    fi
}

# archive_settings: apt's proxies, retries and the like; not paths, not hooks.
archive_settings() {
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|ForceIPv)' || true
}
