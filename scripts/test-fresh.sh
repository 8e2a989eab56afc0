#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves what README promises: on a bare Debian 12, with a clone of this repository's HEAD and nothing
# else, scripts/quickstart.sh and scripts/test.sh each work. "Bare" is a debootstrap of variant minbase, an
# own one for each of the two; the kernel and the process ids are this machine's, since perf events need
# them. Prints PASS or FAIL for each, and exits 0 only when both passed. Not part of the tests: it
# downloads a system.
#
#   scripts/test-fresh.sh [--cache DIR] [quickstart|test]
#
# --cache keeps the debootstrapped base and the downloaded packages, so that a second run is quicker;
# by default $XDG_CACHE_HOME/cpu-profilerd-fresh. Packages come from where this machine's apt takes them:
# mirror, keyring and proxy are read from apt's own view of its configuration.
set -euo pipefail

suite=bookworm
source_dir=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cpu-profilerd-fresh
proofs=()

while [ $# -gt 0 ]; do
    case $1 in
    --cache)
        cache=${2:?--cache needs a folder}
        shift
        ;;
    quickstart | test) proofs+=("$1") ;;
    *)
        echo "usage: $0 [--cache DIR] [quickstart|test]" >&2
        exit 2
        ;;
    esac
    shift
done
[ ${#proofs[@]} -gt 0 ] || proofs=(quickstart test)

die() {
    echo "$0: $*" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || die "needs root, for mounts"
for program in debootstrap unshare git; do
    command -v "$program" >/dev/null || die "needs $program (apt-get install debootstrap util-linux git)"
done

# All mounts are made in a mount namespace of our own: they end with this script, whatever happens to it.
if [ -z "${TEST_FRESH_NAMESPACE:-}" ]; then
    TEST_FRESH_NAMESPACE=1 exec unshare --mount --propagation private "$0" --cache "$cache" "${proofs[@]}"
fi

work=$(mktemp -d)
clean_up() {
    # Whatever is still mounted below must be gone before anything is removed.
    awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/self/mounts | sort -r |
        xargs -r -n 1 umount
    if grep -qF " $work/" /proc/self/mounts; then
        echo "$0: left in place, something is still mounted: $work" >&2
    else
        rm -rf "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$cache/archives"

# shellcheck source=scripts/bare_system.sh
. "$source_dir/scripts/bare_system.sh"
bare_find "$suite" "$work"
bare_make "$suite" "$work" "$cache"

# make_root ROOT: a bare system with a clone in /root/cpu-profilerd.
make_root() {
    local root=$1 device name major minor
    bare_unpack "$root" "$work"
    git clone --quiet --no-hardlinks "$source_dir" "$root/root/cpu-profilerd"

    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
        IFS=: read -r name major minor <<<"$device"
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
    mkdir "$root/dev/pts"
    mount -t devpts -o ptmxmode=666,mode=620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    mkdir -m 1777 "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount --bind "$cache/archives" "$root/var/cache/apt/archives"
}

# run_inside ROOT SCRIPT: in a mount namespace whose root ROOT is. Not merely a chroot: a profiler that visits
# another mount namespace and comes back, as perf does, would come back outside of it.
run_inside() {
    # What follows expands inside.
    # shellcheck disable=SC2016
    unshare --mount --propagation private /bin/bash -euc '
        cd "$1"
        mkdir -p .outside
        pivot_root . .outside
        cd /root/cpu-profilerd
        umount -l /.outside
        exec "${@:2}"' inside "$1" /usr/bin/env -i HOME=/root TERM=dumb \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy" https_proxy="$http_proxy"} \
        CPU_PROFILERD_REQUIRE_PERF=1 "$2" </dev/null
}

status=0
for proof in "${proofs[@]}"; do
    make_root "$work/$proof"
    echo "== scripts/$proof.sh in a bare $suite"
    began=$SECONDS
    if run_inside "$work/$proof" "scripts/$proof.sh"; then
        echo "PASS scripts/$proof.sh ($((SECONDS - began)) s)"
    else
        echo "FAIL scripts/$proof.sh ($((SECONDS - began)) s)"
        status=1
    fi
done
exit "$status"
