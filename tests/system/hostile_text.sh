#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Names with everything that a terminal obeys (C0, DEL, C1, separators, marks of right-to-left text) come to profctl
# from a recording, from a daemon, from a config, from the names of files and from a real program of another user. No
# verb prints one of them raw, in text, in JSON or in a message, and what is JSON is still the same text.
. "${0%/*}/lib.sh"
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
python3 "$SOURCE_DIR/tests/system/hostile_text.py" made "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"

# From here on a program of uid 4711 chooses its name, the name of its file and those of its functions.
require_perf
use_build release
chmod 755 "$WORK"
mkdir -m 777 "$WORK/home"
cat >"$WORK/named.c" <<'C'
#include <sys/prctl.h>
volatile unsigned long sum;
__attribute__((noinline)) void evil_LONG_NAME_OF_A_FUNCTION(void)
{
    for (int i = 0; i < 100000; i++)
        sum += i;
}
int main(void)
{
    prctl(PR_SET_NAME, "n\302\233\033\177\302\205x");
    for (int i = 0; i < 5000; i++)
        evil_LONG_NAME_OF_A_FUNCTION();
    return 0;
}
C
gcc -O1 "$WORK/named.c" -o "$WORK/named" || fail "gcc"
program=$WORK/home/$(printf 'p\302\2332J\033[1m\342\200\256\r')
python3 - "$WORK/named" "$program" <<'PYTHON' || fail "the program cannot be made"
import os, sys
name = b"evil_LONG_NAME_OF_A_FUNCTION"
hostile = "evil\u009b2J\x1b]0;\x07\u2028\u202e\x7f".encode()
content = open(sys.argv[1], "rb").read()
assert content.count(name) > 0 and len(hostile) <= len(name)
with open(sys.argv[2], "wb") as file:
    file.write(content.replace(name, hostile.ljust(len(name), b"_")))
os.chmod(sys.argv[2], 0o755)
PYTHON
start_daemon
profctl record -a -F 1999 -o "$WORK/real.fxt" -- setpriv --reuid=4711 --regid=4711 --clear-groups "$program" \
    >"$WORK/said" 2>&1 || fail "record: $(cat -v "$WORK/said")"
python3 "$SOURCE_DIR/tests/system/hostile_text.py" real "$BIN/profctl" "$WORK/real.fxt" "$WORK/said" || fail "see above"
