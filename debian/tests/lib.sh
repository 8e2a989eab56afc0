# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the tests of the installed packages: where the kernel lets the service sample nothing, they are skipped.
set -eu

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

skip() {
    echo "SKIP: $*" >&2
    exit 77
}

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null) || skip "the kernel has no perf events"
[ "$paranoid" -le 2 ] || skip "kernel.perf_event_paranoid is $paranoid"
[ -d /run/systemd/system ] || skip "systemd is not the init here"

# A program to be seen, which any machine has, until the test ends.
sha256sum /dev/zero &
load=$!
trap 'kill "$load"' EXIT
cd "${AUTOPKGTEST_TMP:-$(mktemp -d)}"
