#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl merge`: three hosts whose boots and wall clocks differ become one recording, in which each sample has the time of
# the day of its own host, nothing within a host changes its order, and pprof, OTLP and ndjson have the hosts; and one
# archive, with a manifest as Perfetto has it and the files as they are. How far hosts may be apart is what their clocks
# were moved. The same with three daemons on hosts made with namespaces.
. "${0%/*}/lib.sh"
require_perf
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}

python3 "${0%/*}/merge.py" "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"

# host NAME: a machine of that name, as far as the daemon can see, records.
host() {
    unshare --uts sh -c 'hostname "$1" && exec "$2" --socket "$3" >"$4" 2>&1' sh "$1" "$BIN/cpu-profilerd" "$WORK/$1.sock" "$WORK/$1.log" &
    background_pids+=($!)
    wait_until 10 test -S "$WORK/$1.sock" || fail "no daemon on $1: $(cat "$WORK/$1.log")"
    profctl record --socket "$WORK/$1.sock" -F 199 -d 1 -o "$WORK/$1.fxt.gz" >"$WORK/$1.out" 2>&1 &
    recorders+=($!)
}
recorders=()
run_in_background "$BIN/workloads/busy" --seconds 4 >/dev/null
for name in red green blue; do host "$name"; done
for pid in "${recorders[@]}"; do wait "$pid" || fail "a host does not record: $(cat "$WORK"/*.out)"; done
profctl merge "$WORK"/{red,green,blue}.fxt.gz -o "$WORK/three.fxt.gz" >"$WORK/said" || fail merge
[ "$(grep -cE '^[0-9]+ samples from \S+ to \S+, wall clock moved: [0-9.]+ ms, (red|green|blue)$' "$WORK/said")" -eq 3 ] || fail "$(cat "$WORK/said")"
grep -q 'hosts are apart by up to [0-9.]* ms' "$WORK/said" || fail "it does not say how far hosts are apart: $(cat "$WORK/said")"
profctl merge "$WORK"/{red,green,blue}.fxt.gz -o "$WORK/three.tar" --json >"$WORK/said.json" || fail merge
profctl export "$WORK/three.fxt.gz" --format ndjson -o "$WORK/three.ndjson" || fail export
profctl report --json "$WORK/three.fxt.gz" >"$WORK/report.json" || fail report
python3 - "$WORK" <<'PYTHON' || fail "see above"
import json, sys, tarfile
folder = sys.argv[1]
rows = [json.loads(line) for line in open(f"{folder}/three.ndjson")]
samples = [row for row in rows if row["table"] == "sample"]
told = json.load(open(f"{folder}/said.json"))
counts = {r["host"]: r["samples"] for r in told["recordings"]}
found = {host: sum(row["host"] == host for row in samples) for host in counts}
if sorted(counts) != ["blue", "green", "red"] or found != counts or 0 in counts.values():
    sys.exit(f"FAIL: the hosts have {found} samples, not {counts}")
if json.load(open(f"{folder}/report.json"))["samples"] != len(samples):
    sys.exit("FAIL: the report has other samples")
for r in told["recordings"]:
    times = [row["time_unix_ns"] for row in samples if row["host"] == r["host"]]
    if not r["from_unix_ns"] <= min(times) <= max(times) <= r["to_unix_ns"] + told["apart_ns"] or r["moved_ns"] > 10**9:
        sys.exit(f"FAIL: {r}: samples from {min(times)} to {max(times)}")
if len(tarfile.open(f"{folder}/three.tar").getnames()) != 4:
    sys.exit("FAIL: the archive has other files")
PYTHON
