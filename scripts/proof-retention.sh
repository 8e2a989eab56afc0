#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that a session holds what `profctl start` says it holds: 60 s at 4000 Hz of gcc's own compiler on
# every CPU, no client reading meanwhile, everything else at its default. Nothing may be dropped or lost, and
# the file that is read after the stop must have every sample that the books say was kept. Prints the books,
# what a sample takes, in the buffer and in the file, and how full the buffer was. Not part of the tests: it
# keeps every CPU busy for more than a minute, and needs the preset `release`.
#
#   scripts/proof-retention.sh           SECONDS_HELD=10 makes it shorter
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
seconds=${SECONDS_HELD:-60}
hz=4000

for program in gcc python3; do
    command -v "$program" >/dev/null || die "needs $program"
done
need_built "$bin/cpu-profilerd" "$bin/profctl"

# preprocess: some of our own sources, the larger ones.
preprocess() {
    local source folder include=()
    for folder in "$source_dir"/{common,daemon/*,daemon/*/include}/; do
        include+=(-I "$folder")
    done
    for source in "$source_dir"/daemon/{process/process_mappings,process/proc_read,session/session,perf/perf_source,modules/module_cache}.c; do
        gcc -std=gnu17 -D_GNU_SOURCE -DCPU_PROFILERD_VERSION='"proof"' "${include[@]}" \
            -E "$source" -o "$work/$(basename "$source" .c).i" || die "cannot preprocess $source"
    done
}

# compile_for_ever: gcc's cc1 and nothing else, until `enough` is there.
compile_for_ever() {
    local cc1 unit
    cc1=$(gcc -print-prog-name=cc1)
    while [ ! -e "$work/enough" ]; do
        for unit in "$work"/*.i; do
            "$cc1" -quiet -std=gnu17 -O2 -g -fpreprocessed "$unit" -o /dev/null
        done
    done
}

preprocess
daemon_start "$bin" "$work"
cpus=$(nproc)
for ((i = 0; i < cpus; i++)); do
    compile_for_ever &
    loads+=($!)
done

"$bin/profctl" start -F "$hz" --json >"$work/start.json"
echo "== $seconds s of cc1 on $cpus CPUs at $hz Hz, every default, no client reads"
sleep "$seconds"
"$bin/profctl" stop --json >"$work/stop.json"
loadavg=$(cut -d ' ' -f 1 /proc/loadavg)
"$bin/profctl" status --json >"$work/status.json"
stop_loads
"$bin/profctl" read -o "$work/proof.fxt" | sed "s|$work/||"
"$bin/profctl" report --json "$work/proof.fxt" >"$work/report.json"
"$bin/profctl" close >/dev/null

python3 - "$work" "$(stat -c %s "$work/proof.fxt")" "$seconds" "$loadavg" <<'PYTHON'
import json, sys

work, file_bytes, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start, stop, status, report = (json.load(open("%s/%s.json" % (work, name), encoding="utf-8"))
                               for name in ("start", "stop", "status", "report"))
session, total = status["session"], stop["books"]["total"]
print("config", json.dumps(session["config"]))
stacks = report["stacks"]
print("stacks", " ".join("%s %d" % item for item in stacks.items()))
print("the machine: load average %s; its host took %d ms" %
      (sys.argv[4], sum(cpu["steal_ns"] for cpu in stop["books"]["cpus"]) // 1000000))
print("file: %d samples, %d bytes, %.1f a sample" %
      (report["samples"], file_bytes, file_bytes / max(report["samples"], 1)))
capacity = session["config"]["buffer_kib_per_cpu"] * 1024 * len(stop["books"]["cpus"])
used = session["buffer_used_bytes"]
print("buffer: %d bytes used, names among them, %.1f a sample; %d for samples of all CPUs, so %.0f %%" %
      (used, used / max(total["kept"], 1), capacity, 100 * used / capacity))
proofs = [
    ("the buffer was said to hold that long: %d s" % start["holds_s"], start["holds_s"] >= seconds),
    ("every CPU was sampled: %d kept" % total["kept"], total["kept"] > 0),
    ("dropped: %d" % total["dropped"], total["dropped"] == 0),
    ("lost: %d" % total["lost"], total["lost"] == 0),
    ("in the file: %d, kept: %d" % (report["samples"], total["kept"]), report["samples"] == total["kept"]),
]
for what, good in proofs:
    print("PASS" if good else "FAIL", what)
sys.exit(0 if all(good for _, good in proofs) else 1)
PYTHON
