#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The default runs everywhere. The daemon is told that the machine has as much memory for each CPU as one of 8 CPUs with
# 1 GiB, and as one of 256 CPUs with 64 GiB: rings may take a 32nd of it, 512 MiB at most. A default session is accepted,
# says in its reply and on the terminal what is less than usual, has rings that fit, and records. What is asked for
# explicitly and does not fit is refused, by its name, with what would fit. unit.perf_plan has the arithmetic.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ -z "${CPU_PROFILERD_SERVICE:-}" ] || skip "a service is told nothing"
cpus=$(nproc --all)

# on_machine STORY RING_BYTES EXPLICIT: a daemon whose rings may take so much; EXPLICIT copies do not fit.
on_machine() {
    local story=$1 ring_bytes=$2
    export MACHINE_MEMORY_BYTES=$((ring_bytes * 32))
    export LD_PRELOAD=$BUILD_DIR/lib/small_machine.so
    start_daemon
    unset LD_PRELOAD
    echo "== $story: rings of $((ring_bytes >> 10)) KiB"
    PYTHONPATH=${0%/*} python3 - "$CPU_PROFILERD_SOCKET" "$daemon_pid" "$ring_bytes" <<'PYTHON' || fail "$story: Create's reply"
import sys
from sampler import Connection
sampler = Connection(sys.argv[1])
reply = sampler.call("Create", config={})
print(*reply["notes"], sep="\n")
assert any(note.startswith("stack_copy_bytes: is ") for note in reply["notes"]), reply
rings = [line.split()[0].split("-") for line in open(f"/proc/{sys.argv[2]}/maps") if "[perf_event]" in line]
mapped = sum(int(end, 16) - int(start, 16) for start, end in rings)
print(f"{len(rings)} rings, {mapped >> 10} KiB")
assert 0 < mapped <= int(sys.argv[3]), mapped
sampler.call("Close")
PYTHON
    profctl record --native -o "$WORK/p.fxt" -- "$WORKLOADS/busy" --seconds 2 >"$WORK/out" 2>&1 || fail "$story: $(cat "$WORK/out")"
    grep -q '^profctl: note: stack_copy_bytes: is ' "$WORK/out" || fail "$story: no note: $(cat "$WORK/out")"
    profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/report.json" || fail "$story: report"
    expect_json "$WORK/report.json" 'd["samples"] > 50 and sum(r["self"] for r in d["rows"] if "fifths" in r["name"]) > 0.9 * d["samples"]' \
        "$story: the default does not record"
    echo '{"stack_copy_bytes": 65000, "frequency_hz": 4000}' >"$WORK/explicit.json"
    if profctl record --native --config "$WORK/explicit.json" -o "$WORK/q.fxt" -- true >"$WORK/out" 2>&1; then
        fail "$story: what does not fit is accepted"
    fi
    grep -q stack_copy_bytes "$WORK/out" || fail "$story: refused without its name: $(cat "$WORK/out")"
    cat "$WORK/out"
    stop_daemon || fail "$story: the daemon did not end well"
}

on_machine "8 CPUs with 1 GiB" $((cpus * (32 << 20) / 8))
on_machine "256 CPUs with 64 GiB" $((cpus * (512 << 20) / 256))
