#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# One recording in every format that `profctl export` writes. Readers that are not ours, and readers of these tests by the
# formats' own documents, find the same total and the same samples in each function as are counted from `profctl dump
# --json`: with names that formats could trip over, kernel frames, markers, inlined functions, stacks of 500 frames,
# several segments, and in a recording without samples.
. "${0%/*}/lib.sh"
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}

cat >"$WORK/inlined.c" <<'C'
volatile unsigned long sum;
static inline __attribute__((always_inline)) void innermost(void)
{
    sum += 3;
}
static inline __attribute__((always_inline)) void middle(void)
{
    innermost();
}
__attribute__((noinline)) void outermost(void)
{
    middle();
}
int main(void)
{
    outermost();
    return 0;
}
C
build=(gcc -O1 -g "-Wl,--build-id" "$WORK/inlined.c" -o)
"${build[@]}" "$WORK/inlined" && "${build[@]}" "$WORK/inlined_lld" -fuse-ld=lld &&
    "${build[@]}" "$WORK/inlined_fixed" -no-pie -fno-pie || fail "gcc"
python3 "${0%/*}/export_formats.py" "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"
