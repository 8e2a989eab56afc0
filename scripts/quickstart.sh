#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# From a bare Debian 12 to a profile: installs what the build needs, builds a release, records the whole
# machine for 5 s and shows where the time went. Run as root; can be run again. Writes profile.fxt into
# the current folder and leaves nothing running.
#
# 999 Hz is profctl's own default: fine enough for 5 s, and cheap enough for any machine. Whatever the rate, the daemon
# chooses a period within 0.1 % that is not in step with timers of 100, 250 or 1000 Hz. `HZ=4000 scripts/quickstart.sh` takes another rate.
#
# Exit status: 0 done, 1 failed, 3 the kernel allows no perf events here.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
bin=$source_dir/build/release/bin
hz=${HZ:-999}
seconds=5
output=$PWD/profile.fxt

step() {
    printf '== %s\n' "$*"
}

work=$(mktemp -d)
busy_pid=

# shellcheck source=scripts/daemon.sh
. "$source_dir/scripts/daemon.sh"

clean_up() {
    if [ -n "$busy_pid" ]; then
        kill "$busy_pid" 2>/dev/null || true
        wait "$busy_pid" 2>/dev/null || true
    fi
    daemon_stop || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

quietly() {
    if ! "$@" >"$work/step.log" 2>&1; then
        tail -n 40 "$work/step.log" >&2
        echo "failed: $*" >&2
        exit 1
    fi
}

step "packages"
"$source_dir/scripts/install-deps.sh"

step "build: build/release"
cd "$source_dir"
quietly cmake --preset release
quietly cmake --build --preset release
cd - >/dev/null

if ! "$bin/workloads/perf_probe"; then
    exit 3
fi

step "daemon on $work/control.sock"
daemon_start "$bin" "$work"

step "recording the whole machine for $seconds s at $hz Hz, with the program 'busy' to be seen: $output"
"$bin/workloads/busy" --seconds $((seconds + 2)) >/dev/null &
busy_pid=$!
"$bin/profctl" record -F "$hz" -d "$seconds" -o "$output"

step "the 20 hottest functions, and the books"
"$bin/profctl" report "$output"

step "done; look further with: $bin/profctl report --help"
