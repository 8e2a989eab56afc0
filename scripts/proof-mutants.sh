#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that the unit tests notice when the code is wrong: makes small errors (mutants) in the pure modules, one at a
# time, and runs the unit tests that link the module.
#   scripts/proof-mutants.sh [--count N] [--seed N] [FILE...]
# Of all mutants of the files below, or of FILE..., the seed (1) chooses N (200). scripts/mutants.py has the operators.
# It works on a copy of the sources in build/mutants, and prints each mutant with the test that killed it, or SURVIVED,
# and the share that was killed. The same command goes on with a run that was interrupted. Exit status 1: less than
# 85 % were killed.
#
# The files are those whose behaviour a unit test can see. Left out are:
# - sources that are thin over the kernel, as their first comment says: only a system test can see those;
# - `modules`, `control`, `session`, `log` and the library, which live with threads, sockets and processes;
# - rooms of the client that print or fetch for a person, which system tests run.
set -euo pipefail
cd "$(dirname "$0")/.."

pure=(
    daemon/fxt/*.c
    daemon/config/*.c
    daemon/symbolize/*.c
    daemon/sample/*.c
    daemon/perf/perf_{plan,record,ring}.c
    daemon/books/*.c
    daemon/process/{cgroup_prefix,comm_glob,filter,mapping_set,path_set,proc_parse}.c
    daemon/process/process_{mappings,notes,shares,table,threads}.c
    daemon/stack/*.c
    daemon/trace/*.c
    daemon/sampler/{deferred_match,deferred_write,drain,proc_feed,resolver,sample_phases,sideband,sideband_feed,sink,switch_rings,waiting_samples}.c
    common/{cpu_list,fault,json,quota,seeded_hash,utf8,varlink}.c
    client/profile/*.c
    client/report/report.c
    client/export/*.c
    client/lines/lines_answer.c
    client/record/record_config.c
    client/cli/{books_print,text_out}.c
)

usage() {
    echo "usage: $0 [--count N] [--seed N] [FILE...]" >&2
    exit 2
}

count=200
seed=1
files=()
while [ $# -gt 0 ]; do
    case $1 in
    --count | --seed)
        [ $# -ge 2 ] && [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || usage
        case $1 in
        --count) count=$2 ;;
        --seed) seed=$2 ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *)
        files+=("$1")
        shift
        ;;
    esac
done
[ ${#files[@]} -gt 0 ] || files=("${pure[@]}")

folder=build/mutants
mkdir -p "$folder"
rm -rf "$folder/sources"
mkdir "$folder/sources"
find . -mindepth 1 -maxdepth 1 ! -name build ! -name .git -exec cp -a -t "$folder/sources" {} +
# -O1 without debugging information compiles and links fast, and makes the same object of many mutants that are none.
cmake -S "$folder/sources" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 >"$folder/log" ||
    { cat "$folder/log" && exit 2; }
exec python3 scripts/mutants.py "$folder" "$count" "$seed" "${files[@]}"
