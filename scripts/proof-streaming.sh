#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that a session which is read as it goes can go on for ever: for ten minutes short processes, new
# threads and mappings that come and go keep every CPU busy at 4000 Hz, while `profctl record -o -` reads.
# Every 10 s the daemon's memory is printed: all of it that is resident, what is its own (RssAnon), and what
# of that the trace buffer holds, whose two logs of definitions fill up in turns, at most 32 MiB each.
# The rest must not grow: its peak in the second half of the time may be above that of the first half by
# 4 MiB (one CPU's sideband ring waiting in memory) and a sixteenth of the peak (what malloc keeps).
# Not part of the tests: it keeps every CPU busy for minutes, and needs the presets `release` and `dev`.
#
#   scripts/proof-streaming.sh           SECONDS_STREAMED=60 makes it shorter
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
workloads=$source_dir/build/dev/bin/workloads
seconds=${SECONDS_STREAMED:-600}

need_built "$bin/cpu-profilerd" "$bin/profctl" "$workloads/turn" "$workloads/map_storm" "$workloads/threads"

# Processes of 1 ms, each a file of its own name; every 200th a new file.
churn_processes() {
    local i=0
    while [ ! -e "$work/enough" ]; do
        [ $((i % 200)) -ne 0 ] || cp "$workloads/turn" "$work/turn_$((i / 200 % 50))"
        "$work/turn_$((i / 200 % 50))" "$work/turns" 1000
        i=$((i + 1))
        [ $((i % 2000)) -ne 0 ] || : >"$work/turns"
    done
}

churn_mappings() {
    while [ ! -e "$work/enough" ]; do
        "$workloads/map_storm" 4000 "$work/ping" "$work/pong" >/dev/null
        "$workloads/threads" --seconds 0.2 >/dev/null
    done
}

# memory FIELD: KiB
memory() {
    awk -v field="$1:" '$1 == field { print $2 }' "/proc/$daemon_pid/status"
}

# buffer: KiB of the trace buffer, which alone asks for neither reserved memory nor huge pages (proc(5): nr, nh).
buffer() {
    awk '$1 == "Anonymous:" { anonymous = $2 } $1 == "VmFlags:" && / nr / && / nh/ { sum += anonymous }
        END { print sum + 0 }' "/proc/$daemon_pid/smaps"
}

: >"$work/turns"
daemon_start "$bin" "$work"
churn_processes &
loads+=($!)
churn_mappings &
loads+=($!)
"$bin/profctl" record -F 4000 -a -d "$seconds" -o - 2>"$work/record.err" | wc -c >"$work/bytes" &
loads+=($!)

echo "== $seconds s at 4000 Hz, read as it goes"
half=$((seconds / 2))
first=0
second=0
for ((t = 10; t < seconds; t += 10)); do
    sleep 10
    rss=$(memory VmRSS)
    anonymous=$(memory RssAnon)
    in_buffer=$(buffer)
    own=$((anonymous - in_buffer))
    echo "$t s: RSS $rss KiB, anonymous $anonymous KiB, of it trace buffer $in_buffer KiB, the rest $own KiB"
    if [ "$t" -le "$half" ]; then
        first=$((own > first ? own : first))
    else
        second=$((own > second ? own : second))
    fi
done
"$bin/profctl" status || true
bound=$((first + 4096 + first / 16))
if [ "$second" -gt "$bound" ]; then
    die "the second half's peak is $second KiB, the first's $first KiB: more than $bound KiB"
fi
echo "PASS the rest: at most $first KiB in the first half, $second KiB in the second (bound $bound KiB)"
