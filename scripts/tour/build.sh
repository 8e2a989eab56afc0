#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A small C++ build: a tool of its own makes a table from the sources, then all is compiled and linked.
set -eu
"${CXX:-g++}" -O1 -g -o table "$(realpath "$(dirname "$0")")/table.cc"
for part in 1 2 3 4; do
    awk -v part="$part" 'BEGIN { print "#include <algorithm>\n#include <string>\n#include <vector>\nvoid use(const char *);"
        for (i = 0; i < 300; i++)
            print "static void msg_" part "x" i "(std::vector<int> &v) { std::sort(v.begin(), v.end()); use(\"" i "\"); }"
        print "void part_" part "(std::vector<int> &v) { msg_" part "x1(v); }" }' >"part$part.cc"
done
awk 'BEGIN { for (i = 0; i < 50000; i++) print "  log(msg_" i % 700 "(id), now());" }' >messages.txt
./table part?.cc messages.txt >table.inc
awk 'BEGIN { print "#include <vector>\nstruct row { const char *name; int count; };\nrow table[] = {\n#include \"table.inc\"\n};"
    print "void use(const char *) {}"; for (p = 1; p < 5; p++) print "void part_" p "(std::vector<int> &);"
    print "int main() { std::vector<int> v;"; for (p = 1; p < 5; p++) print "part_" p "(v);"; print "}" }' >main.cc
printf '%s\n' part?.cc main.cc | xargs -P 2 -n 1 "${CXX:-g++}" -O1 -c
"${CXX:-g++}" -o program part?.o main.o
