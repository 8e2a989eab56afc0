#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Our unwinder and libdw's agree on the stacks of real programs, each sample of them, with nothing left out.
# Without arguments a short run over a few programs; with --long all that are installed, 2,500 samples each.
#
# The columns: samples, frames each | stacks that are the same, that ours brought on from the kernel's chain
# where the copied bytes end, that libdw brought on to an address which is no code, or past a function of Go's
# that went over to another stack, that ours alone or libdw alone has more of, that differ | the same stacks again with fewer bytes: how many, that the kernel's chain
# brought on, that reached their root, that came out wrong | how ours ended: complete, short copy, depth, no
# rule, bad memory. Lines below a row say where stacks part or end early.
. "${0%/*}/../system/lib.sh"
PROGRAMS=$SOURCE_DIR/tests/oracle/programs
LIMIT_PERCENT=99.9
started=()
names=()
mode=${1:-}
samples=400
[ "$mode" != --long ] || samples=2500

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

# compare: what was started, once it has come to work.
compare() {
    local status
    [ ${#started[@]} -gt 0 ] || return
    sleep 1
    "$BIN/unwind_oracle" -d $((3 * samples * ${#started[@]})) -n "$samples" "${names[@]}" >"$WORK/some"
    status=$?
    kill -KILL "${started[@]}" 2>/dev/null
    wait "${started[@]}" 2>/dev/null
    started=() names=()
    tee -a "$WORK/rows" <"$WORK/some"
    [ "$status" -eq 0 ] || fail "unwind_oracle ended with status $status"
}

# compile NAME SOURCE COMPILER...: a program in WORK, if there is such a compiler.
compile() {
    local name=$1 source=$PROGRAMS/$2
    shift 2
    ! command -v "$1" >/dev/null || "$@" -o "$WORK/$name" "$source" >"$WORK/$name.log" 2>&1 ||
        fail "cannot compile $source: $(cat "$WORK/$name.log")"
}

echo "program      samples frames   same joined nowher   past   ours  libdw differ |    less  joined  rooted wrong |" \
    "  root  short  depth norule badmem"
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
    start gzip gzip -9 -c "$WORK/text"
    compare
    start node node "$PROGRAMS/mixed.js"
    compare
    compile mixed_rust mixed.rs rustc -O
    GOCACHE=$WORK/go compile mixed_go mixed.go go build
    start rust "$WORK/mixed_rust"
    start go "$WORK/mixed_go"
    compare
    "$PROGRAMS/big.sh" rust 6000 >"$WORK/big.rs"
    start rustc "$(rustc --print sysroot)/bin/rustc" -O "$WORK/big.rs" -o "$WORK/big"
    start java java -XX:+PreserveFramePointer "$PROGRAMS/Mixed.java"
    start openssl openssl speed -seconds 60 sha256 rsa2048
    compare
fi

awk -v limit=$LIMIT_PERCENT '!/^ / && $1 != "lost" {
        samples += $2; same += $4; joined += $5; nowhere += $6; past += $7; cut += $12; wrong += $15
    }
    END {
        percent = samples == 0 ? 0 : 100 * (same + joined + nowhere + past) / samples
        printf "%d stacks, %.3f %% agree (at least %s %%); %d with fewer bytes, %d wrong (none allowed)\n",
            samples, percent, limit, cut, wrong
        exit samples < 1000 || percent < limit || wrong > 0
    }' "$WORK/rows" || fail "the unwinders disagree"
