#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that a varlink client that is not ours can talk to the daemon: varlinkctl of Debian sid's systemd,
# from a tree of its own below a temporary folder. Needs root and a Debian mirror; no package is installed
# and the machine's apt sees nothing of it. Prints every command with what it answers; status 0 when all
# answers are as they should be, 77 where something to prove it with is missing.
#
#   scripts/proof-varlinkctl.sh [BIN_DIR]      default: build/release/bin
set -u

cd "${0%/*}/.." || exit 1
bin=$(realpath -m "${1:-build/release/bin}")
interface=io.cpuprofilerd.Sampler
work=$(mktemp -d)
root=$work/root
failures=0

# shellcheck source=scripts/daemon.sh
. scripts/daemon.sh

clean_up() {
    local status=$?
    daemon_stop || status=1
    rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

skip() {
    echo "SKIP: $*" >&2
    exit 77
}

complain() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# Sources, lists and cache are in $work; where the mirror is, the machine's own configuration says.
apt_of_sid() {
    apt-get -qq -c "$work/apt.conf" "$@"
}

get_packages() {
    local mirror
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || skip "apt knows no Debian mirror"
    mkdir -p "$work"/{lists/partial,cache/archives/partial,etc}
    : >"$work/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$work/etc/sources.list"
    cat >"$work/apt.conf" <<APT
Dir::Etc::sourcelist "$work/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
APT
    apt_of_sid update >&2 || skip "the lists of sid cannot be fetched"
    apt_of_sid install --yes --download-only systemd >&2 || skip "systemd of sid cannot be fetched"
}

unpack() {
    local package link
    mkdir -p "$root"
    for package in "$work"/cache/archives/*.deb; do
        dpkg -x "$package" "$root" || exit 1
    done
    # What base-files does on a machine.
    for link in lib lib64; do
        [ -e "$root/$link" ] || ln -s "usr/$link" "$root/$link"
    done
    mkdir -p "$root"/{run/control,proc,tmp}
    cp common/$interface.varlink "$root/tmp/"
}

# varlinkctl ARGUMENT...: with the socket's folder at /run/control, for 3 s at most; the mounts end with it.
# The tree has what systemd depends on, and so no shell.
varlinkctl() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private -- bash -c '
        mount --bind "$1" "$2/run/control" && mount -t proc proc "$2/proc" &&
        exec env -i PATH=/usr/sbin:/usr/bin SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat LC_ALL=C.UTF-8 \
            timeout 3 chroot "$2" /usr/bin/varlinkctl "${@:3}"' - "$work/socket" "$root" "$@" </dev/null
}

# expect STATUS PATTERN ARGUMENT...: what varlinkctl says to it, both outputs, has the pattern.
expect() {
    local status=$1 pattern=$2 got=0
    shift 2
    printf '\n$ varlinkctl'
    printf ' %q' "$@"
    echo
    varlinkctl "$@" >"$work/out" 2>&1 || got=$?
    cat "$work/out"
    if [ "$got" -ne "$status" ] || ! grep -qE -- "$pattern" "$work/out"; then
        complain "status $got and this, not $status and '$pattern'"
    fi
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -x "$bin/cpu-profilerd" ] || skip "no $bin/cpu-profilerd: build the preset release first"
get_packages
unpack
mkdir "$work/socket"
daemon_start "$bin" "$work/socket" || exit 1
socket=/run/control/control.sock

echo '$ varlinkctl --version'
varlinkctl --version
expect 0 'Product: cpu-profilerd' info $socket
expect 0 "^$interface\$" list-interfaces $socket
expect 0 "^$interface.Read\$" list-methods $socket $interface
expect 0 '^method Create' introspect $socket $interface
expect 0 '^method GetInfo' introspect $socket org.varlink.service
expect 0 '^method Create' validate-idl /tmp/$interface.varlink
expect 0 '"uptime_s"' call $socket $interface.Status '{}'
expect 0 '"session":null' call --json=short $socket $interface.Status '{}'
# One reply a second until the caller goes, here by the time limit.
expect 124 '"uptime_s"' call --more --json=short $socket $interface.Status '{}'
[ "$(grep -c uptime_s "$work/out")" -ge 2 ] || complain "not several replies"
expect 1 "$interface.InvalidArgs" call $socket $interface.Create '{"config":{"frequency_hz":0}}'
# The errors of org.varlink.service are shown as the errno that systemd has for each, with their parameters.
expect 1 '"parameter":"other"' call $socket $interface.Create '{"config":{},"other":1}'
expect 1 "\"method\":\"$interface.Nonsense\"" call $socket $interface.Nonsense '{}'
expect 1 '"interface":"io.example.Nonsense"' call $socket io.example.Nonsense.Do '{}'
# Each varlinkctl is a connection of its own, and one that has attached to nothing may not Start or Read.
expect 1 "$interface.BadState" call $socket $interface.Start '{}'
expect 0 '"holds_s"' call --json=short $socket $interface.Create '{"config":{"frequency_hz":999},"detach":true}'
expect 0 '"state":"created"' call --json=short $socket $interface.Attach '{}'
expect 1 "$interface.BadState" call $socket $interface.Read '{}'
expect 1 "$interface.AlreadyExists" call $socket $interface.Create '{"config":{}}'

echo
if [ "$failures" -eq 0 ]; then
    echo "all as it should be"
fi
[ "$failures" -eq 0 ]
