#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A stripped program is recorded, and its debug file is on a debuginfod server only, a real one on loopback. With
# the server profctl shows inlined functions; without one, with one that refuses and with one that is silent it
# shows what it shows otherwise, and waits no longer than DEBUGINFOD_TIMEOUT, once.
#
# The bound on that: the client library calls back at least every second, and a report without a server takes
# what is measured here first. So timeout + 1 s + twice that report, and 2 s for a busy machine.
. "${0%/*}/lib.sh"
require_perf
for program in debuginfod g++ objcopy strip; do
    command -v "$program" >/dev/null || skip "$program is not installed (scripts/install-deps.sh --test)"
done
start_daemon

mkdir "$WORK/debug"
g++ -O2 -g -Wl,--build-id -o "$WORK/templates" "$SOURCE_DIR/tests/oracle/programs/templates.cc" ||
    fail "the program does not build"
build_id=$(readelf -nW "$WORK/templates" | sed -n 's/.*Build ID: //p')
objcopy --only-keep-debug "$WORK/templates" "$WORK/debug/templates.debug"
strip "$WORK/templates"
profctl record --native --no-kernel -F 1999 -o "$WORK/p.fxt" -- "$WORK/templates" 150 >"$WORK/out" 2>&1 || fail "record: $(cat "$WORK/out")"

# report NAME [VARIABLE=VALUE...]: --inline --json into NAME.json; how long it took is in TOOK_MS.
report() {
    local name=$1 begin
    shift
    begin=$(date +%s%3N)
    env -u DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH="$WORK/cache_$name" "$@" "$(command -v profctl)" report --inline \
        --json -n 0 "$WORK/p.fxt" >"$WORK/$name.json" 2>"$WORK/$name.err" || fail "report $name: $(cat "$WORK/$name.err")"
    TOOK_MS=$(($(date +%s%3N) - begin))
}

state() {
    json "$WORK/$1.json" "[f['state'] for f in d['debug_files'] if f['build_id'] == '$build_id'][0]"
}

inlined="sum(r['self_inlined'] for r in d['rows'] if (r['module'] or '').endswith('/templates'))"
# What is not in the file cannot be shown; what the machine's own libraries have may be.
report none
none_ms=$TOOK_MS
[ "$(state none)" = "no file" ] || fail "without a server the debug file is '$(state none)'"
expect_json "$WORK/none.json" "$inlined == 0" "inlined functions without debugging information"
[ -s "$WORK/none.err" ] && fail "without a server: $(cat "$WORK/none.err")"

port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
urls=DEBUGINFOD_URLS=http://127.0.0.1:$port
# -L or not, it scans at once; the file is there when it can be asked for.
run_in_background debuginfod -p "$port" -d "$WORK/server.sqlite" -F "$WORK/debug" >"$WORK/server.log" 2>&1
server=$BACKGROUND_PID
has_file() {
    python3 -c 'import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5).read()' "http://127.0.0.1:$port/buildid/$build_id/debuginfo" 2>/dev/null
}
wait_until 60 has_file || fail "debuginfod does not serve: $(tail -n 5 "$WORK/server.log")"

report served "$urls"
[ "$(state served)" = found ] || fail "with a server the debug file is '$(state served)'"
expect_json "$WORK/served.json" "$inlined > 0" "no inlined functions with a server"
expect_json "$WORK/served.json" "any(f['file'].startswith('$WORK/cache_served/') for f in d['debug_files'] if f['file'])" \
    "the debug file is not the cached one"
env DEBUGINFOD_CACHE_PATH="$WORK/cache_served" "$urls" "$(command -v profctl)" export --format folded --lines \
    "$WORK/p.fxt" >"$WORK/folded" 2>/dev/null
grep -q ';main:templates\.cc:[0-9]*;.*_\[i\]' "$WORK/folded" || fail "folded stacks have no inlined frames in main"

kill "$server"
wait "$server" 2>/dev/null
# What was fetched stays.
cp -r "$WORK/cache_served" "$WORK/cache_kept"
report kept "$urls"
[ "$(state kept)" = found ] || fail "the cache is not used: '$(state kept)'"

# within NAME TIMEOUT_S: the last report was in time, and shows what it does without a server.
within() {
    local bound_ms=$(($2 * 1000 + 1000 + 2 * none_ms + 2000))
    echo "$1: $TOOK_MS ms, at most $bound_ms"
    [ "$TOOK_MS" -le "$bound_ms" ] || fail "$1: took $TOOK_MS ms"
    cmp -s "$WORK/$1.json" "$WORK/none.json" || fail "$1: the report is another than without servers"
    [ "$(grep -c '"debuginfod: ' "$WORK/$1.err")" -eq 1 ] || fail "$1: says '$(cat "$WORK/$1.err")'"
}
report down "$urls" DEBUGINFOD_TIMEOUT=30
within down 0

run_in_background python3 -c 'import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); open(sys.argv[2], "w").close(); time.sleep(600)' "$port" "$WORK/mute"
wait_until 10 test -e "$WORK/mute" || fail "the silent server does not start"
report silent "$urls" DEBUGINFOD_TIMEOUT=3
within silent 3
[ "$TOOK_MS" -ge 3000 ] || fail "the silent server was not waited for: $TOOK_MS ms"
