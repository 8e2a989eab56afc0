#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A 32-bit process maps another vdso than the daemon does: what it executes there is [vdso], and has the names of
# that image, or none where the kernel does not give it. It never has those of the daemon's own.
. "${0%/*}/lib.sh"
require_perf
# The headers of the 64-bit C library do for 32 bits.
if ! gcc -m32 -O1 -ffreestanding -fno-pie -nostdlib -static -no-pie -o "$WORK/vdso32" \
    -idirafter "/usr/include/$(gcc -print-multiarch)" "$SOURCE_DIR/tests/workloads/vdso32.c" 2>"$WORK/gcc.out"; then
    fail "no 32-bit program can be built: $(cat "$WORK/gcc.out")"
fi
kernel_runs "$WORK/vdso32" || {
    echo "SKIP: this kernel runs no 32-bit programs"
    exit 77
}
use_build release
start_daemon
run_in_background "$WORK/vdso32"
profctl record --native --no-kernel -F 4000 -a -d 3 -o "$WORK/vdso.fxt" >"$WORK/record.out" 2>&1 || fail "record: $(cat "$WORK/record.out")"
profctl export --format folded "$WORK/vdso.fxt" | grep '^vdso32;' >"$WORK/folded" || fail "no sample of vdso32"
awk '{ sub(/ [0-9]+$/, ""); sub(/.*;/, ""); print }' "$WORK/folded" | sort | uniq -c
grep -q ';__vdso_\|\[vdso\]' "$WORK/folded" || fail "no sample in the vdso: $(cat "$WORK/folded")"
! grep -v ';__vdso_clock_gettime$\|;\[vdso\]+0x[0-9a-f]*$' <(grep 'vdso_\|\[vdso\]' "$WORK/folded" | sed 's/ [0-9]*$//') || fail "names of another image"
