# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by proofs that need a bare Debian: a debootstrap of variant minbase, kept in a cache, whose packages come from
# where this machine's apt takes them. Mirror, keyring and proxy are read from apt's own view of its configuration.
# Needs `set -euo pipefail`, root, and `source_dir`, the top of the sources.

# shellcheck source=scripts/archive.sh
. "$source_dir/scripts/archive.sh"

# bare_find SUITE WORK: exports apt's proxy, and writes what apt needs to WORK/sources.list and WORK/apt.conf.
bare_find() {
    local proxy
    archive_find "$1"
    archive_lines "$1" | awk '{ print "deb", $1, $2, $3 }' >"$2/sources.list"
    archive_settings >"$2/apt.conf"
    proxy=$(apt-config dump Acquire::http::Proxy | sed -n 's/.*"\(.*\)".*/\1/p')
    [ -z "$proxy" ] || export http_proxy="$proxy" https_proxy="$proxy"
}

# bare_make SUITE WORK CACHE [PACKAGE...]: after bare_find; sets bare_base to a tar of a system with these packages.
bare_make() {
    local suite=$1 work=$2 cache=$3 packages
    shift 3
    [[ $archive_mirror != https:* ]] || set -- "$@" ca-certificates
    packages=$(IFS=,; echo "$*")
    bare_base=$cache/$suite-$(dpkg --print-architecture)-$({ cat "$work/sources.list"; echo "$packages"; } | cksum | cut -d ' ' -f 1).tar
    [ ! -e "$bare_base" ] || return 0
    echo "== debootstrap $suite"
    debootstrap --variant=minbase ${packages:+--include="$packages"} --keyring="$archive_keyring" "$suite" "$work/base" \
        "$archive_mirror" >"$work/debootstrap.log" 2>&1 || {
        tail -n 20 "$work/debootstrap.log" >&2
        echo "$0: debootstrap failed" >&2
        return 1
    }
    mkdir -p "$cache"
    tar -C "$work/base" --numeric-owner -cf "$bare_base.new" .
    mv "$bare_base.new" "$bare_base"
    rm -rf "$work/base"
}

# bare_unpack ROOT WORK: the system, which takes packages from where this machine does.
bare_unpack() {
    mkdir "$1"
    tar -C "$1" -xf "$bare_base"
    cp "$2/sources.list" "$1/etc/apt/sources.list"
    cp --dereference "$archive_keyring" "$1/etc/apt/trusted.gpg.d/"
    cp "$2/apt.conf" "$1/etc/apt/apt.conf.d/90machine"
    cp --dereference /etc/resolv.conf /etc/hosts "$1/etc/" 2>/dev/null || true
}
