#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Java has no names for the code that it has made, until `record --names` asks it for them, while it runs; and a command
# that is Java is asked when it has begun. A machine that lets no tool attach is sent no signal, which would have it print
# its threads, wherever the option for that came from. Java is no part of what tests need: without it this one is left out.
. "${0%/*}/lib.sh"
for program in java javac; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing (a JDK, 17 or later)"
    exit 77
done
require_perf
use_build release
cat >"$WORK/Spinner.java" <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Spins in turns of some 10 ms, and rests for 30 ms after each. It ends when it is killed, or, told "map", a
 * hundred turns after it has written its map; where it is never asked for one, after 2,000.
 */
public class Spinner {
    static long spin(long x) {
        for (int i = 0; i < 10_000_000; i++)
            x = x * 6364136223846793005L + 1442695040888963407L ^ (x >>> 7);
        return x;
    }

    public static void main(String[] args) throws InterruptedException {
        Path map = Path.of("/tmp/perf-" + ProcessHandle.current().pid() + ".map");
        long x = 1;
        for (int turn = 0, left = 100; left > 0; turn++) {
            x = spin(x);
            Thread.sleep(30);
            if (turn == 5)
                System.out.println("turns");
            if (args[0].equals("map") && (turn > 1900 || Files.exists(map)))
                left--;
        }
        System.out.println(x);
    }
}
JAVA
javac -J-XX:TieredStopAtLevel=1 -d "$WORK" "$WORK/Spinner.java" || fail "javac" # its own code is hardly worth a better compiler
java_pid=
remove_map() {
    rm -f "/tmp/perf-$java_pid.map" "/tmp/.java_pid$java_pid" # the socket of one that was killed stays
}
at_end remove_map

# named FILE: of the samples of Java, how many of a hundred are in spin(), by its name, and how many in no function.
named() {
    profctl export --format folded "$1" | awk '$1 ~ /^java;/ || /;/ {
        count = $NF; sub(/ [0-9]+$/, ""); all += count
        if (/;long Spinner.spin\(long\)$/) named += count
        if (/;\[anon\]$/) unnamed += count
    } END { printf "%d %d\n", all ? 100 * named / all : 0, all ? 100 * unnamed / all : 0 }'
}

start_daemon
# -Xbatch: the loop waits for its compiler. Else a busy machine has the last of its code made when its map is written already.
run_in_background java -Xbatch -XX:+PreserveFramePointer -cp "$WORK" Spinner forever >"$WORK/java.out"
java_pid=$BACKGROUND_PID
wait_until 120 grep -q turns "$WORK/java.out" || fail "Java does not begin" # then the loop has been compiled
record_while_run 200 "$java_pid" "$WORK/before.fxt" -p "$java_pid"
read -r before unnamed < <(named "$WORK/before.fxt")
if [ "$before" -ne 0 ] || [ "$unnamed" -lt 70 ]; then
    fail "before: $before % named, $unnamed % without a name"
fi
# Samples before the map have no names: of 3 s, up to 0.9 s pass until a busy machine lets Java write it. The loop runs in a
# quarter of them.
record_while_run 750 "$java_pid" "$WORK/after.fxt" -p "$java_pid" --names
grep -qF "names: java (pid $java_pid): has written its map" "$WORK/record.out" || fail "it does not say so: $(cat "$WORK/record.out")"
read -r after unnamed < <(named "$WORK/after.fxt")
echo "before: $before % named; after: $after % named, $unnamed % without a name"
[ "$after" -ge 70 ] || fail "after: $after % named, $unnamed % without a name"
kill -0 "$java_pid" || fail "Java has ended"
stop_background # it would take a CPU from the rest
remove_map

profctl record --names --native -o "$WORK/command.fxt" -- java -cp "$WORK" Spinner map >"$WORK/command.out" 2>"$WORK/said" ||
    fail "record: $(cat "$WORK/said")"
command_pid=$(sed -n 's/^profctl: names: java (pid \([0-9]*\)): has written its map$/\1/p' "$WORK/said")
[ -n "$command_pid" ] || fail "the command was not asked: $(cat "$WORK/said")"
rm -f "/tmp/perf-$command_pid.map"
read -r named unnamed < <(named "$WORK/command.fxt")
echo "command: $named % named, $unnamed % without a name"
[ "$named" -gt 0 ] || fail "the command's code has no names"

# alone HOW COMMAND...: of a Java that was told HOW to let no tool attach it is said, and it prints nothing.
alone() {
    local how=$1 pid
    run_in_background "${@:2}" -cp "$WORK" Spinner forever >"$WORK/alone.out" 2>"$WORK/alone.err"
    pid=$BACKGROUND_PID
    wait_until 120 grep -q turns "$WORK/alone.out" || fail "told by $how: Java does not begin: $(cat "$WORK/alone.err")"
    "$BUILD_DIR/bin/naming_probe" "$pid" 2>"$WORK/said" || fail "naming_probe: $(cat "$WORK/said")"
    grep -qF "(pid $pid): has written no map: it was started with -XX:+DisableAttachMechanism" "$WORK/said" ||
        fail "told by $how: $(cat "$WORK/said")"
    kill -QUIT "$pid" # what it prints now was not printed before
    wait_until 60 grep -q "Full thread dump" "$WORK/alone.out" || fail "told by $how: it prints no threads"
    [ "$(grep -c "Full thread dump" "$WORK/alone.out")" -eq 1 ] || fail "told by $how: it was sent SIGQUIT"
    {
        kill -KILL "$pid"
        wait "$pid" || true # its status is that of the signal
    } 2>/dev/null
}
option=-XX:+DisableAttachMechanism
echo "$option" >"$WORK/options"
alone "the command line" java $option
alone "a file" java "@$WORK/options"
alone "the environment" env JDK_JAVA_OPTIONS=$option java
alone "the environment, without counters" env JAVA_TOOL_OPTIONS=$option java -XX:-UsePerfData
