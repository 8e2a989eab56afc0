#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints a program of COUNT functions, no two alike, which keep a compiler busy for long:
#   big.sh c|rust COUNT
set -eu

awk -v language="$1" -v count="$2" 'BEGIN {
    for (i = 0; i < count; i++) {
        if (language == "c") {
            printf "int f%d(int *p, int n) { int s = n; for (int i = 0; i < n; i++) { s += p[i] * %d;", i, i
            printf " if (s %% %d == 3) s ^= p[s & 7]; else p[i & 3] = s; } return s; }\n", i + 2
        } else {
            printf "pub fn f%d(p: &mut Vec<u64>) -> u64 { let mut s = %du64; for x in p.iter_mut() {", i, i
            printf " s = s.wrapping_mul(*x); if s %% %d == 3 { *x = s; } } s }\n", i + 2
        }
    }
    if (language == "rust") print "fn main() {}"
}'
