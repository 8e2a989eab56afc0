#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts below a prefix works from there: the programs, and the library for others, by
# pkg-config. Both examples record with it, and what they record is a recording.
. "${0%/*}/lib.sh"
require_perf
use_build release

prefix=$WORK/prefix
cmake --install "$RELEASE_DIR" --prefix "$prefix" >"$WORK/install.out" 2>&1 || fail "install: $(cat "$WORK/install.out")"
pc=$(find "$prefix" -name profctl.pc)
[ -n "$pc" ] || fail "no profctl.pc"
library=${pc%/pkgconfig/profctl.pc}
for file in "$prefix/sbin/cpu-profilerd" "$prefix/bin/profctl" "$prefix/include/profctl.h" \
    "$prefix/share/bash-completion/completions/profctl" "$prefix/share/zsh/site-functions/_profctl" \
    "$prefix/share/fish/vendor_completions.d/profctl.fish" \
    "$library/libprofctl.so" "$library/libprofctl.so.0" "$prefix/lib/systemd/system/cpu-profilerd.service" \
    "$prefix/lib/systemd/system/cpu-profilerd.socket" "$prefix/lib/sysusers.d/cpu-profilerd.conf"; do
    [ -e "$file" ] || fail "not installed: $file"
done
# Links of pages are others where they are installed, in the same lines: check.package follows them.
for page in "$SOURCE_DIR"/docs/*.md; do
    [ "$(wc -l <"$page")" -eq "$(wc -l <"$prefix/share/doc/cpu-profilerd/${page##*/}")" ] || fail "not installed whole: $page"
done
for page in "$SOURCE_DIR"/docs/*.png; do
    cmp -s "$page" "$prefix/share/doc/cpu-profilerd/${page##*/}" || fail "not installed: $page"
done
grep -qx "ExecStart=$prefix/sbin/cpu-profilerd" "$prefix/lib/systemd/system/cpu-profilerd.service" || fail "the unit starts another program"

# From any prefix, and moved afterwards; nothing of the build is needed.
DESTDIR=$WORK/staged cmake --install "$RELEASE_DIR" >"$WORK/install.out" 2>&1 || fail "install: $(cat "$WORK/install.out")"
for program in profctl cpu-profilerd; do
    staged=$(find "$WORK/staged" -type f -path "*bin/$program")
    [ -n "$staged" ] || fail "$program is not below DESTDIR"
    env -i "$staged" --version >"$WORK/out" || fail "$program does not run where it was put"
    readelf -d "$staged" | grep -E 'R(UN)?PATH' && fail "$program looks for libraries where it was built"
done

# No other package's .pc is needed to build with the library.
export PKG_CONFIG_LIBDIR=$library/pkgconfig LD_LIBRARY_PATH=$library
[ "$(pkg-config --modversion profctl)" = "$("$prefix/bin/profctl" --version | cut -d ' ' -f 2)" ] || fail "profctl.pc has another version"
read -ra flags < <(pkg-config --cflags --libs profctl)
gcc -std=gnu11 -Wall -Werror "$SOURCE_DIR/client/examples/record_second.c" "${flags[@]}" -o "$WORK/record_second" ||
    fail "the example does not build with: ${flags[*]}"
readelf -d "$WORK/record_second" | grep -q 'NEEDED.*libprofctl.so.0' || fail "the example does not use the library"

PATH=$prefix/bin:$search_path
mkdir "$WORK/bin"
ln -s "$prefix/sbin/cpu-profilerd" "$WORK/bin/"
BIN=$WORK/bin
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 280 --rest 1 >/dev/null
for example in "$WORK/record_second" "python3 $SOURCE_DIR/client/examples/record_second.py"; do
    # shellcheck disable=SC2086
    $example "$WORK/second.fxt" >"$WORK/out" 2>&1 || fail "$example: $(cat "$WORK/out")"
    profctl report --json -n 0 "$WORK/second.fxt" >"$WORK/report.json" || fail "$example: no recording"
    expect_json "$WORK/report.json" "d['samples'] > 300 and d['samples'] == d['books']['total']['kept']" "$example: too few samples"
    expect_json "$WORK/report.json" "[r for r in d['rows'] if r['name'] == 'spin_three_fifths']" "$example: the workload is not in it"
    rm "$WORK/second.fxt"
    # A session that is in the way is a sentence, and no success.
    profctl start >"$WORK/out" || fail "start"
    # shellcheck disable=SC2086
    $example "$WORK/second.fxt" >"$WORK/out" 2>&1 && fail "$example: succeeds although there is a session"
    grep -qi 'exists' "$WORK/out" || fail "$example says: $(cat "$WORK/out")"
    profctl close >/dev/null || fail "close"
done
