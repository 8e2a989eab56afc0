# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the tests of the installed packages. Where the kernel lets the service sample nothing, the setting is lowered
# until the test ends, or, in a container, whose kernel is another machine's, the test is skipped. The caller's own EXIT
# trap calls end_test.
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
[ -d /run/systemd/system ] || skip "systemd is not the init here"

load=
end_test() {
    [ -z "$load" ] || kill "$load"
    [ "$paranoid" -le 2 ] || echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
}

if [ "$paranoid" -gt 2 ]; then
    ! systemd-detect-virt --quiet --container || skip "kernel.perf_event_paranoid is $paranoid, in a container"
    echo 2 >/proc/sys/kernel/perf_event_paranoid || skip "kernel.perf_event_paranoid is $paranoid, and cannot be set"
    trap end_test EXIT
fi

# A program to be seen, which any machine has, until the test ends.
sha256sum /dev/zero &
load=$!
trap end_test EXIT
cd "${AUTOPKGTEST_TMP:-$(mktemp -d)}"
