#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Our unwinder and libdw's agree on the stacks of real programs. Without arguments a short run over a few of
# them; with --long all that are installed, several thousand samples each.
#
# A row has: the samples, frames each; stacks that are the same; stacks that ours brought on from the kernel's
# chain where the copied bytes end; that ours alone, or libdw alone, has more of; that differ. Then how ours
# ended. Lines below a row say where the two part.
. "${0%/*}/../system/lib.sh"
PROGRAMS=$SOURCE_DIR/tests/oracle/programs
started=()
names=()
SAMPLES_MS=1500
SAMPLES_MAX=400
[ "${1:-}" = --long ] && SAMPLES_MS=8000 && SAMPLES_MAX=2500

require_perf

# start LABEL COMMAND...: one process, which works until it is killed.
start() {
    local label=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "$label: $1 is not installed"
        return
    fi
    "$@" </dev/null >/dev/null 2>"$WORK/$label.log" &
    started+=("$!")
    names+=("$label:$!")
}

# compare: what is running, once it has come to work.
compare() {
    local status=0
    [ ${#started[@]} -gt 0 ] || return
    sleep 1
    "$BIN/unwind_oracle" -d $((SAMPLES_MS * ${#started[@]})) -n "$SAMPLES_MAX" "${names[@]}" |
        tee -a "$WORK/rows" || status=$?
    kill -KILL "${started[@]}" 2>/dev/null
    wait "${started[@]}" 2>/dev/null
    started=() names=()
    status=${PIPESTATUS[0]}
}

# compile LABEL COMPILER ARGUMENT...: a program into WORK; a compiler that is not there is a row less.
compile() {
    local output=$WORK/$1
    shift
    ! command -v "$1" >/dev/null || "$@" -o "$output" || fail "cannot compile $output"
}

# A source that keeps a compiler busy for long.
write_source() {
    awk -v language="$1" 'BEGIN {
        for (i = 0; i < 6000; i++) {
            if (language == "c") {
                printf "int f%d(int *p, int n) { int s = n; for (int i = 0; i < n; i++) { s += p[i] * %d;", i, i
                printf " if (s %% %d == 3) s ^= p[s & 7]; else p[i & 3] = s; } return s; }\n", i + 2
            } else {
                printf "pub fn f%d(p: &mut Vec<u64>) -> u64 { let mut s = %du64; for x in p.iter_mut() {", i, i
                printf " s = s.wrapping_mul(*x); if s %% %d == 3 { *x = s; } } s }\n", i + 2
            }
        }
        if (language != "c") print "fn main() {}"
    }'
}

compile frames_fp gcc -O2 -fno-omit-frame-pointer "$PROGRAMS/frames.c"
compile frames gcc -O2 "$PROGRAMS/frames.c"
head -c 64M /dev/urandom >"$WORK/random"
base64 "$WORK/random" >"$WORK/text"
for ((i = 0; i < 4; i++)); do cat "$WORK/text" "$WORK/text"; done >"$WORK/long_text"

start frames_fp "$WORK/frames_fp"
start frames "$WORK/frames"
start perl perl "$PROGRAMS/mixed.pl"
start python3 python3 "$PROGRAMS/mixed.py"
start bash bash "$PROGRAMS/mixed.sh"
start xz xz -9 -c "$WORK/text"
start sqlite3 sqlite3 -init "$PROGRAMS/mixed.sql" :memory:
compare
if [ "${1:-}" = --long ]; then
    write_source c >"$WORK/big.c"
    start cc1 "$(gcc -print-prog-name=cc1)" -quiet -O2 "$WORK/big.c" -o /dev/null
    start clang clang -O2 -c "$WORK/big.c" -o /dev/null
    compare
    compile exceptions g++ -O2 "$PROGRAMS/exceptions.cc"
    compile frames_clang clang -O2 "$PROGRAMS/frames.c"
    start exceptions "$WORK/exceptions"
    start frames_clang "$WORK/frames_clang"
    compare
    start zstd zstd -19 -T2 -c "$WORK/long_text"
    start gzip gzip -9 -c "$WORK/long_text"
    compare
    start node node "$PROGRAMS/mixed.js"
    start node_fp node --perf-basic-prof "$PROGRAMS/mixed.js"
    compare
    compile mixed_rs rustc -O "$PROGRAMS/mixed.rs"
    GOFLAGS=-mod=mod GOCACHE=$WORK/go compile mixed_go go build "$PROGRAMS/mixed.go"
    start rust "$WORK/mixed_rs"
    start go "$WORK/mixed_go"
    compare
    write_source rust >"$WORK/big.rs"
    start rustc "$(rustc --print sysroot)/bin/rustc" -O "$WORK/big.rs" -o "$WORK/big"
    start java java "$PROGRAMS/Mixed.java"
    start openssl openssl speed -seconds 60 sha256 rsa2048
    compare
fi

awk '!/^ / && $2 ~ /^[0-9]+$/ {
        samples += $2; same += $4; went_on += $5; ours += $6; libdw += $7; different += $8
    }
    END {
        printf "%-12s %7d        %7d %8d %7d %7d %7d\n", "all", samples, same, went_on, ours, libdw, different
        agree = samples == 0 ? 0 : 100 * (same + went_on + ours) / samples
        printf "ours agree with all frames of libdw in %.3f %% of stacks\n", agree
    }' "$WORK/rows"
