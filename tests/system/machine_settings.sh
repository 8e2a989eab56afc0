# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by each test that changes the machine (a sysctl, a CPU), and by scripts/test.sh before the first of them.
#   keep_settings FILE...      before the first change: what these files hold is noted
#   restore_settings           the files hold it again
#   finish_restored            the test's EXIT trap, in place of lib.sh's: so they do, or the test fails
#   restore_left_settings      the same for a test that was killed, which no trap outlives
# The note is a file of /run, which ends when the machine boots, as the settings do. A test that runs has the note locked.
SETTINGS_NOTE=${SETTINGS_NOTE:-/run/cpu-profilerd-test-settings}

# Written twice: one setting may forbid another (perf_cpu_time_max_percent 0 any change of the rate).
restore_settings() {
    local pass value file status=0
    [ -s "$SETTINGS_NOTE" ] || return 0
    for pass in 1 2; do
        while read -r value file; do
            [ "$(cat "$file")" = "$value" ] || echo "$value" 2>/dev/null >"$file" || [ "$pass" = 1 ] || {
                echo "$file cannot be set to $value again"
                status=1
            }
        done <"$SETTINGS_NOTE"
    done
    [ "$status" -ne 0 ] || : >"$SETTINGS_NOTE"
    return "$status"
}

finish_restored() {
    local status=$?
    restore_settings || status=1
    (exit "$status")
    finish
}

restore_left_settings() {
    [ -s "$SETTINGS_NOTE" ] || return 0
    (
        flock -n 9 || exit 0 # of a test that runs
        echo "an earlier test was killed; restored: $(tr '\n' ' ' <"$SETTINGS_NOTE")"
        restore_settings
    ) 9<"$SETTINGS_NOTE"
}

# What cannot be written is not noted: the test does not change it either.
keep_settings() {
    local file
    restore_left_settings || return 1
    [ -w "${SETTINGS_NOTE%/*}" ] || return 0
    exec {settings_lock}>>"$SETTINGS_NOTE"
    flock -n "$settings_lock" || {
        echo "another test that changes the machine runs"
        return 1
    }
    for file in "$@"; do
        [ ! -w "$file" ] || echo "$(cat "$file") $file"
    done >"$SETTINGS_NOTE"
}
