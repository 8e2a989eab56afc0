#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every command that README.md, docs/ and the manual pages show is run, and what they show below it has the shape of what
# it prints. docs_commands.py has the rules, and which blocks are not run is said in the pages. The folder in which a page's
# commands run has recordings by the names that pages use, a Makefile and the examples of configs; a compiler of that
# name alone runs beside them, so that there is something to be recorded.
. "${0%/*}/lib.sh"
use_build release
require_perf
start_daemon

ready=$WORK/ready
mkdir -p "$ready/build" "$WORK/pages"
ln -s "$RELEASE_DIR" "$ready/build/release"
ln -s "$SOURCE_DIR/config" "$ready/config"
cp "$WORKLOADS/busy" "$ready/cc1plus"
printf 'all:\n\t./cc1plus --seconds 0.15\n' >"$ready/Makefile"
run_in_background "$ready/cc1plus" --seconds 280 --rest 14 >"$WORK/load.out"

# record NAME COMMAND...
record() {
    local name=$1
    shift
    (cd "$ready" && profctl record -F 4000 -o "$name.fxt" -- "$@") >"$WORK/record.out" 2>&1 || fail "record $name: $(cat "$WORK/record.out")"
}

record profile "$WORKLOADS/busy" --seconds 0.3
record before-1 "$WORKLOADS/chores" --seconds 0.2
record before-2 "$WORKLOADS/chores" --seconds 0.2
record before-3 "$WORKLOADS/chores" --seconds 0.2
record after-1 "$WORKLOADS/chores" --seconds 0.2 100
record after-2 "$WORKLOADS/chores" --seconds 0.2 100
record after-3 "$WORKLOADS/chores" --seconds 0.2 100
cp "$ready/profile.fxt" "$ready/a.fxt"
cp "$ready/before-1.fxt" "$ready/before.fxt"
cp "$ready/after-1.fxt" "$ready/after.fxt"

export BROWSER=true PATH=$PATH:$WORKLOADS
unset PAGER PROFCTL_PAGER
python3 "${0%/*}/docs_commands.py" "$SOURCE_DIR" "$BUILD_DIR/man" "$ready" "$WORK/pages" || fail "pages and programs differ"
