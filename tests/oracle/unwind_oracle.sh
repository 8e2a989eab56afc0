#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Our unwinder and libdw's agree on the stacks of real programs, each sample of them, with nothing left out.
# Without arguments a short run over a few programs; with --long all that are installed, 2,500 samples each.
# With --stitch instead: how often stitching is right, the table of docs/unwinding.md.
#
# The columns: samples, frames each | stacks that are the same, that ours brought on from the kernel's chain
# where the copied bytes end, that libdw brought on to an address which is no code, where libdw did not see that
# a function of Go's had gone over to another stack, that ours marks as not proved and libdw brought on or elsewhere,
# that ours alone or libdw alone has more of, that differ | the same stacks again with fewer bytes: how many, that the
# kernel's chain brought on, that reached their root, that came out wrong | how ours ended: complete, short copy, depth,
# no rule, bad memory, stitched, unproved. Lines below a row say where stacks part or end early.
. "${0%/*}/../system/lib.sh"
PROGRAMS=$SOURCE_DIR/tests/oracle/programs
LIMIT_PERCENT=99.9
MARKED_LIMIT_PERCENT=1.3
STITCH_LIMIT_PERCENT=99.5 # of what was likely, and not proven
started=()
names=()
mode=${1:-}
samples=400
case $mode in --long | --stitch) samples=2500 ;; esac

require_perf

# start LABEL COMMAND...: one process, which works until it is killed.
start() {
    local label=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "$label: no $1 here"
        return
    fi
    "$@" </dev/null >/dev/null 2>"$WORK/$label.log" &
    started+=("$!")
    names+=("$label:$!")
}

# judge [OPTION...]: what was started, once it has come to work; the verdict is in WORK/some.
judge() {
    local status
    sleep 1
    "$BIN/unwind_oracle" -d $((3 * samples * ${#started[@]})) -n "$samples" "$@" "${names[@]}" >"$WORK/some"
    status=$?
    kill -KILL "${started[@]}" 2>/dev/null
    wait "${started[@]}" 2>/dev/null
    started=() names=()
    [ "$status" -eq 0 ] || fail "unwind_oracle ended with status $status: $(cat "$WORK/some")"
}

compare() {
    [ ${#started[@]} -gt 0 ] || return
    judge
    tee -a "$WORK/rows" <"$WORK/some"
}

# stitch BYTES LABEL COMMAND...: a row of how its stacks are stitched when only so many bytes of them are seen.
stitch() {
    local bytes=$1 label=$2
    shift
    start "$@"
    [ ${#started[@]} -gt 0 ] || return
    judge -s "$bytes"
    awk -v label="$label" '/ stitched / { printf "| %s | %d | %d | %d | %d of %d |\n", label, $2, $4, $6, $10, $12 }' \
        "$WORK/some" | tee -a "$WORK/stitched"
}

stitch_all() {
    compile frames frames.c gcc -O2 -Wl,-z,lazy
    compile exceptions exceptions.cc g++ -O2
    compile two_callers two_callers.c gcc -O2 -fno-optimize-sibling-calls
    "$PROGRAMS/big.sh" c 6000 >"$WORK/big.c"
    echo "| program | bytes | cut | stitched | right, of those whose root all bytes lead to |"
    echo "|---|---|---|---|---|"
    stitch 16384 clang clang -O2 -c "$WORK/big.c" -o /dev/null
    stitch 4096 cc1 "$(gcc -print-prog-name=cc1)" -quiet -O2 "$WORK/big.c" -o /dev/null
    stitch 1024 exceptions "$WORK/exceptions"
    stitch 1024 perl perl "$PROGRAMS/mixed.pl"
    stitch 1024 frames env LD_BIND_NOT=1 "$WORK/frames"
    stitch 1024 python3 /usr/bin/python3 "$PROGRAMS/mixed.py"
    stitch 1024 two_callers "$WORK/two_callers"
    awk -v limit=$STITCH_LIMIT_PERCENT '$2 != "two_callers" { right += $10; known += $12 }
        END {
            printf "without two_callers, made to defeat it: %d of %d right (at least %s %%)\n", right, known, limit
            exit known < 1000 || 100 * right < limit * known
        }' "$WORK/stitched" || fail "stitching goes wrong"
}

# compile NAME SOURCE COMPILER...: a program in WORK, if there is such a compiler.
compile() {
    local name=$1 source=$PROGRAMS/$2
    shift 2
    ! command -v "$1" >/dev/null || "$@" -o "$WORK/$name" "$source" >"$WORK/$name.log" 2>&1 ||
        fail "cannot compile $source: $(cat "$WORK/$name.log")"
}

if [ "$mode" = --stitch ]; then
    stitch_all
    exit
fi
echo "program      samples frames   same joined nowher astray marked   ours  libdw differ |    less  joined  rooted wrong |" \
    "  root  short  depth norule badmem stitch unprvd"
compile frames_fp frames.c gcc -O2 -fno-omit-frame-pointer
compile frames frames.c gcc -O2 -Wl,-z,lazy
head -c 48M /dev/urandom | base64 >"$WORK/text"
start frames_fp "$WORK/frames_fp"
start frames env LD_BIND_NOT=1 "$WORK/frames"
start perl perl "$PROGRAMS/mixed.pl"
start python3 /usr/bin/python3 "$PROGRAMS/mixed.py"
start bash bash "$PROGRAMS/mixed.sh"
start xz xz -9 -c "$WORK/text"
start sqlite3 sqlite3 -init "$PROGRAMS/mixed.sql" :memory:
compare
if [ "$mode" = --long ]; then
    "$PROGRAMS/big.sh" c 6000 >"$WORK/big.c"
    start cc1 "$(gcc -print-prog-name=cc1)" -quiet -O2 "$WORK/big.c" -o /dev/null
    start clang clang -O2 -c "$WORK/big.c" -o /dev/null
    compare
    compile exceptions exceptions.cc g++ -O2
    compile frames_clang frames.c clang -O2
    start exceptions "$WORK/exceptions"
    start frames_clang "$WORK/frames_clang"
    compare
    start zstd zstd -19 -c "$WORK/text"
    start gzip gzip -9 -c "$WORK"/text "$WORK"/text "$WORK"/text "$WORK"/text "$WORK"/text "$WORK"/text # half a minute
    compare
    start node node "$PROGRAMS/mixed.js"
    compare
    compile mixed_rust mixed.rs rustc -O
    GOCACHE=$WORK/go compile mixed_go mixed.go go build
    GOCACHE=$WORK/go compile clocks clocks.go go build
    start rust "$WORK/mixed_rust"
    start go "$WORK/mixed_go"
    start clocks "$WORK/clocks"
    compare
    "$PROGRAMS/big.sh" rust 15000 >"$WORK/big.rs"
    start rustc "$(rustc --print sysroot)/bin/rustc" -O "$WORK/big.rs" -o "$WORK/big"
    start java java -XX:+PreserveFramePointer "$PROGRAMS/Mixed.java"
    start openssl openssl speed -seconds 60 sha256 rsa2048
    compare
fi

# Ours alone has more frames where libdw gives up: in a signal's trampoline, or in the dynamic linker. How often a sample
# falls there is chance: of one in a thousand, as of all that disagree, 5 standard deviations more are the limit.
# A stack that ours marks claims nothing and is not judged, so there must be few: they are of a program that throws all
# the time, whose unwinder has overwritten its own return address (12 % of its stacks), and of builtins of V8 that have no
# call frames (9 % of node's). That is 1.1 % of the stacks of 20 programs, and with 5 standard deviations 1.3 %.
awk -v limit=$LIMIT_PERCENT -v marked_limit=$MARKED_LIMIT_PERCENT '!/^ / && $1 != "lost" {
        samples += $2; same += $4; joined += $5; nowhere += $6; astray += $7; marked += $8; longer += $9; cut += $13
        wrong += $16
    }
    END {
        judged = samples - marked
        percent = judged == 0 ? 0 : 100 * (same + joined + nowhere + astray + longer) / judged
        chance = judged * (100 - limit) / 100
        printf "%d stacks, of them %d marked (at most %s %%); %.3f %% of the others agree (at least %s %%), of %d ours alone has more (at most %d); %d with fewer bytes, %d wrong (none allowed)\n",
            samples, marked, marked_limit, percent, limit, longer, chance + 5 * sqrt(chance), cut, wrong
        exit samples < 1000 || percent < limit || longer > chance + 5 * sqrt(chance) || wrong > 0 ||
            100 * marked > marked_limit * samples
    }' "$WORK/rows" || fail "the unwinders disagree"
