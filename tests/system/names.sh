#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every program spins in a function of its own name, and the recording of an unprivileged user names it:
# whatever has become of the program's file, whoever may read it, wherever its symbols are.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make files and processes of other users"

user=4711 owner=4712 debug_file=
clean_up() {
    [ -z "$debug_file" ] || rm -f "$debug_file"
    finish
}
trap clean_up EXIT

cat >"$WORK/spin.c" <<'C'
#include <stdlib.h>
#include <time.h>
static volatile unsigned sink;
#ifdef LABEL
__attribute__((noinline)) void SPIN(void) __asm__(LABEL);
#endif
#ifndef ELSEWHERE
__attribute__((noinline)) void SPIN(void)
{
    for (unsigned i = 0; i < 2000000; i++) {
        sink += i;
    }
}
#else
void SPIN(void);
#endif
#ifndef LIBRARY
int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 30);
    while (time(NULL) < end) {
        SPIN();
    }
    return 0;
}
#endif
C
chmod 755 "$WORK"

# build NAME [OPTION...]: a program that spins in NAME().
build() {
    local name=$1
    shift
    gcc -O1 -fno-omit-frame-pointer -DSPIN="$name" "$WORK/spin.c" -o "$WORK/$name" "$@" || fail "gcc: $name"
}

# as USER COMMAND...
as() {
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

# A name of C++, though no compiler for it is needed.
build readable_spin -DLABEL='"_ZN2ns7spinnerIiE4spinEv"'
run_in_background "$WORK/readable_spin"

build deleted_spin
run_in_background "$WORK/deleted_spin"

build replaced_spin
run_in_background "$WORK/replaced_spin"

build static_spin -static-pie
run_in_background "$WORK/static_spin"

# As distributions do: stripped of all, with the symbols as a compressed section.
build packed_spin
objcopy --only-keep-debug "$WORK/packed_spin" "$WORK/packed.debug"
python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open(sys.argv[1], "rb").read()))' "$WORK/packed.debug" >"$WORK/packed.xz"
strip --strip-all "$WORK/packed_spin"
objcopy --add-section .gnu_debugdata="$WORK/packed.xz" "$WORK/packed_spin" || fail "objcopy"
run_in_background "$WORK/packed_spin"

# And with the symbols in a file that is found by its build-id.
build_id=$(od -An -N20 -tx1 /dev/urandom | tr -d ' \n')
build split_spin -Wl,--build-id=0x"$build_id"
debug_file=/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug
mkdir -p "${debug_file%/*}"
objcopy --only-keep-debug "$WORK/split_spin" "$debug_file"
strip --strip-all "$WORK/split_spin"
run_in_background "$WORK/split_spin"

build setuid_spin
chown "$owner" "$WORK/setuid_spin"
chmod 4711 "$WORK/setuid_spin"
run_in_background as "$user" "$WORK/setuid_spin"

build root_only_spin
chmod 0700 "$WORK/root_only_spin"
run_in_background "$WORK/root_only_spin"

# A library that is nowhere but in the process's own mount namespace.
build private_spin -DLIBRARY -shared -fPIC -Wl,-soname=private_spin
build private_main -DELSEWHERE -USPIN -DSPIN=private_spin "$WORK/private_spin" -Wl,-rpath="$WORK/private"
mkdir "$WORK/private"
private=(unshare --mount --pid --fork --kill-child)
"${private[@]}" true 2>/dev/null || skip "no namespaces can be made here"
# shellcheck disable=SC2016
run_in_background "${private[@]}" sh -c 'mount -t tmpfs names "$1/private" && mv "$1/private_spin" "$1/private/" && exec "$1/private_main"' sh "$WORK"

expected=(ns::spinner\<int\>::spin deleted_spin replaced_spin static_spin packed_spin split_spin setuid_spin root_only_spin private_spin)

# Code that is made by a runtime; in a namespace the map is in a /tmp, and under a pid, of its own.
if command -v node >/dev/null; then
    for place in outside inside; do
        cat >"$WORK/$place.js" <<JS
function ${place}_spin(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
const end = Date.now() + 30000; let all = 0;
while (Date.now() < end) all += ${place}_spin(200000);
JS
        chmod 644 "$WORK/$place.js"
        expected+=("${place}_spin")
    done
    run_in_background as "$user" node --perf-basic-prof "$WORK/outside.js" >/dev/null
    maps=/tmp/perf-$BACKGROUND_PID.map
    # shellcheck disable=SC2016
    run_in_background "${private[@]}" sh -c 'script=$(cat "$1") && mount -t tmpfs names /tmp && exec node --perf-basic-prof -e "$script"' sh "$WORK/inside.js" >/dev/null
fi

sleep 1.5
rm "$WORK/deleted_spin"
gcc -O1 -DSPIN=other_spin "$WORK/spin.c" -o "$WORK/other" && mv "$WORK/other" "$WORK/replaced_spin"

start_daemon
chmod 666 "$CPU_PROFILERD_SOCKET"
cp "$BIN/profctl" "$WORK/profctl"
(
    sleep 2
    "$WORKLOADS/brief" >"$WORK/brief.truth"
) &
as "$user" "$WORK/profctl" record -F 999 -d 6 -o - >"$WORK/names.fxt" 2>"$WORK/record.out" || fail "record: $(cat "$WORK/record.out")"
wait $!
profctl report --json -n 0 "$WORK/names.fxt" >"$WORK/names.json" || fail "report"
expected+=(brief_spin)
rm -f "${maps:-}"

for name in "${expected[@]}"; do
    least=20
    [ "$name" != brief_spin ] || least=4
    expect_json "$WORK/names.json" "sum(r['self'] for r in d['rows'] if '$name' in r['name']) >= $least" "$name is not named"
done
expect_json "$WORK/names.json" "not [r for r in d['rows'] if 'other_spin' in r['name']]" "a file that was never run has samples"
profctl report --json -n 0 --no-demangle "$WORK/names.fxt" >"$WORK/mangled.json" || fail "report --no-demangle"
expect_json "$WORK/mangled.json" "[r for r in d['rows'] if r['name'] == '_ZN2ns7spinnerIiE4spinEv']" "--no-demangle demangles"
json "$WORK/names.json" "[(r['name'], r['module'], r['self']) for r in d['rows'][:14]]"
