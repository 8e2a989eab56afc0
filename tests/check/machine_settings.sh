#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A test that changes the machine and is killed leaves no trace: what begins next sets back what it had changed. The
# settings are files of this check. A setting of a test that runs is left alone.
. "${0%/*}/lib.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SETTINGS_NOTE=$work/note
settings=$SOURCE_DIR/tests/system/machine_settings.sh
echo 1 >"$work/online"
echo 4000 >"$work/rate"

# expect STORY ONLINE RATE
expect() {
    local now
    now="$(cat "$work/online") $(cat "$work/rate")"
    [ "$now" = "$2 $3" ] || complain "$1: $now instead of $2 $3"
}

next() {
    bash -c '. "$1"; restore_left_settings' - "$settings"
}

mkfifo "$work/changed" "$work/never"
bash -c '. "$1"; keep_settings "$2/online" "$2/rate" "$2/none" || exit
    echo 0 >"$2/online"; echo 200 >"$2/rate"
    echo >"$2/changed"; read -r <"$2/never"' - "$settings" "$work" &
test_pid=$!
read -r <"$work/changed"
next >"$work/said"
expect "a test that runs" 0 200
kill -KILL "$test_pid"
wait "$test_pid" 2>/dev/null || true
next >>"$work/said"
expect "a killed test" 1 4000
grep -q "restored: 1 $work/online 4000 $work/rate" "$work/said" || complain "it says: $(cat "$work/said")"
echo 0 >"$work/online"
next >"$work/said"
expect "an administrator's change" 0 4000
[ ! -s "$work/said" ] || complain "it says: $(cat "$work/said")"

bash -c '. "$1"; keep_settings "$2/rate" && echo 1 >"$2/rate" && restore_settings' - "$settings" "$work" ||
    complain "a test that ends"
expect "a test that ended" 0 4000
exit "$failed"
