#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The units as they are installed: systemd-analyze has nothing to say about them, and rates the exposure of each
# service at 1.5 or less. No service manager runs for that; what the units do, system.service shows.
. "${0%/*}/lib.sh"

limit=1.5
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$BUILD_DIR" --prefix "$prefix" >"$prefix/log" 2>&1 || { cat "$prefix/log"; exit 1; }
units=$prefix/lib/systemd/system

# A template is judged as an instance of it. Manual pages are looked for below: man would not find them here.
verify() {
    systemd-analyze verify --man=no "$@" >"$prefix/log" 2>&1 || complain "systemd-analyze verify fails: $*"
    [ ! -s "$prefix/log" ] || complain "systemd-analyze verify $*: $(cat "$prefix/log")"
}

# exposure SERVICE: systemd's number, 0.0 to 10.0.
exposure() {
    systemd-analyze security --no-pager --offline=true "$1" |
        sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\) .*/\1/p'
}

cd "$units"
verify ./cpu-profilerd.socket ./cpu-profilerd.service ./cpu-profilerd-record@hourly.service \
    ./cpu-profilerd-record@hourly.timer
while read -r page section; do
    [ -e "$prefix/share/man/man$section/$page.$section" ] || complain "Documentation=: no page $page($section)"
done < <(sed -n 's/^Documentation=man:\(.*\)(\(.*\))$/\1 \2/p' ./* | sort -u)
for service in cpu-profilerd.service cpu-profilerd-record@.service; do
    measured=$(exposure "./$service")
    echo "$service: exposure $measured"
    awk -v measured="$measured" -v limit="$limit" 'BEGIN { exit !(measured != "" && measured <= limit) }' ||
        complain "$service: an exposure of '$measured', at most $limit"
done

# What it would find: an unknown setting, and a right too many.
sed -i 's/^PrivateNetwork=yes/PrivateNetwrok=yes/; s/^CapabilityBoundingSet=.*/CapabilityBoundingSet=~/' cpu-profilerd.service
systemd-analyze verify --man=no ./cpu-profilerd.service 2>&1 | grep -q PrivateNetwrok || complain "the check itself: it finds no mistake"
[ "$(exposure ./cpu-profilerd.service 2>/dev/null | tr -d .)" -gt "${limit/./}" ] || complain "the check itself: it finds no right too many"
exit "$failed"
