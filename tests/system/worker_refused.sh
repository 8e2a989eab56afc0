#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the worker cannot do its work on this machine (its system call filter cannot be loaded, or it kills it), the
# log says so once, with what to do; sessions go on without names.
. "${0%/*}/lib.sh"
require_perf
at_once no_filters no_limits
use_build release
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 4 >/dev/null
program=$BIN/cpu-profilerd
BIN=$WORK/bin
mkdir "$BIN"

# expect_told WHAT SENTENCE: the daemon's worker dies again and again of WHAT, as under_filter has it.
expect_told() {
    printf '#!/bin/sh\nexec %q %q %q "$@"\n' "$BUILD_DIR/bin/under_filter" "$1" "$program" >"$BIN/cpu-profilerd"
    chmod +x "$BIN/cpu-profilerd"
    start_daemon
    profctl record --native -F 99 -d 2 -o "$WORK/p.fxt" >"$WORK/out" 2>&1 || fail "$1: record: $(cat "$WORK/out")"
    wait_until 5 grep -q "^$2" "$WORK/daemon.log" || fail "$1: nobody is told"
    has_died_again() {
        profctl record --native -F 499 -d 0.5 -o "$WORK/p.fxt" >"$WORK/out" 2>&1
        profctl report --json "$WORK/p.fxt" >"$WORK/report.json" || fail "$1: report"
        json "$WORK/report.json" '[r for r in d["rows"] if r["name"] == "spin_three_fifths"]' | grep -qx '\[\]' ||
            fail "$1: there are names, so nothing is proved"
        [ "$(json "$WORK/report.json" 'd["samples"] > 20')" = true ]
    }
    wait_until 10 has_died_again "$1" || fail "$1: no session goes on"
    [ "$(grep -c "^$2" "$WORK/daemon.log")" -eq 1 ] || fail "$1: told more than once"
    stop_daemon || exit 1
}

case $STORY in
no_filters) expect_told no_filters "the worker, .* cannot load its system call filter.*CONFIG_SECCOMP_FILTER, and a container must allow seccomp(2)" ;;
no_limits) expect_told no_limits "the worker, .* system call that its filter does not know.*report it" ;;
esac
