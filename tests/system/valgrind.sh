#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The release daemon under valgrind, through a whole session: no invalid or uninitialised access, nothing
# definitely lost, no descriptor left open that the daemon opened.
. "${0%/*}/lib.sh"
require_perf
use_build release
command -v valgrind >/dev/null || skip "valgrind is not installed"

# daemon_start wants a folder with a cpu-profilerd in it.
mkdir "$WORK/bin"
cat >"$WORK/bin/cpu-profilerd" <<SCRIPT
#!/bin/bash
exec valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \\
    --error-exitcode=99 --log-file="$WORK/valgrind.log" "$BIN/cpu-profilerd" "\$@"
SCRIPT
chmod +x "$WORK/bin/cpu-profilerd"
daemon_start "$WORK/bin" "$WORK" || fail "the daemon did not start under valgrind"

# Its files alone are wanted: each worker takes seconds to start here, and files of several authors take several.
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 3 >/dev/null
profctl record --native --no-kernel -F 999 -d 3 -p "$BACKGROUND_PID" -o "$WORK/valgrind.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
profctl report --json -n 0 "$WORK/valgrind.fxt" >"$WORK/report.json" || fail "report failed"
expect_json "$WORK/report.json" "[r for r in d['rows'] if r['name'] == 'spin_three_fifths']" "the busy program has no names"
stop_daemon || {
    cat "$WORK/valgrind.log"
    fail "valgrind has found something"
}
# A system call that this valgrind does not know is one that an older kernel refuses as well; it says so
# in five lines.
sed -i '/WARNING: unhandled amd64-linux syscall: /,+4d' "$WORK/valgrind.log"
[ ! -s "$WORK/valgrind.log" ] || {
    cat "$WORK/valgrind.log"
    fail "valgrind has said something"
}
