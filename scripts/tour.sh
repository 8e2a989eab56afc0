#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes docs/tour.md: six investigations of programs that scripts/tour/ has, or that Debian has, each recorded
# now, on this machine, by a daemon of its own, and answered by `profctl report` alone. The numbers are those of this run;
# what stands between them is written here, so look at the page before it is kept. Needs root, the release build and
# scripts/install-deps.sh --bench and Chromium, which shows the pictures: FILE's name with -all.png and -table.png.
#   scripts/tour.sh [FILE]     docs/tour.md if no file is named
set -euo pipefail

SOURCE_DIR=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
BIN=${RELEASE_DIR:-$SOURCE_DIR/build/release}/bin
page=$(realpath -m "${1:-$SOURCE_DIR/docs/tour.md}")
programs=$SOURCE_DIR/scripts/tour
WORK=$(mktemp -d /tmp/tour.XXXXXX)
server=
client=
export PATH=$BIN:$PATH LC_ALL=C.UTF-8 TZ=UTC

# shellcheck source=scripts/daemon.sh
. "$SOURCE_DIR/scripts/daemon.sh"

finish() {
    local status=$? pid
    for pid in $client $server; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    daemon_stop || status=1
    rm -rf "$WORK"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for program in cpu-profilerd profctl gcc g++ python3 node redis-server redis-benchmark redis-cli gzip sort chromium; do
    if ! command -v "$program" >/dev/null; then
        echo "$0 needs $program (scripts/install-deps.sh --bench; cmake --build --preset release)" >&2
        exit 1
    fi
done

# record FILE ARGUMENT...: the words of the command into the page, and what it says to nowhere.
record() {
    local file=$1
    shift
    printf '```console\n# profctl record -F 999 -o %s %s\n' "$file" "$*"
    profctl record -F 999 -o "$file" "$@" >"$WORK/out" 2>&1 </dev/null || { cat "$WORK/out" >&2; exit 1; }
    printf '...\n```\n\n'
}

# report ARGUMENT...: the words of the command and all that it prints.
report() {
    printf '```console\n# profctl report %s\n' "$*"
    profctl report "$@" 2>/dev/null
    printf '```\n\n'
}

# view ARGUMENT...: the same without what stands above and below the view.
view() {
    printf '```console\n# profctl report %s\n...\n' "$*"
    profctl report "$@" 2>/dev/null | awk -v RS= -v ORS='\n\n' 'NR > 2 { print last } { last = $0 }' | sed '$d'
    printf '...\n```\n\n'
}

# picture FILE NAME FRAGMENT FRAME TEXT: the flame graph of a recording, as a browser shows it after a click on a frame.
picture() {
    profctl flamegraph "$1" -o "${1%.fxt}.html" >/dev/null 2>&1
    PYTHONPATH=$SOURCE_DIR/tests/system python3 "$programs/picture.py" "${1%.fxt}.html" "${page%.md}-$2.png" "$3" "$4"
    printf '![%s](%s)\n\n' "$5" "$(basename "${page%.md}")-$2.png"
}

slow_build() {
    cat <<'E2'
## A slow C++ build

Where does the time of `build.sh` go? Everything that it starts is recorded with it.

E2
    cp "$programs"/{build.sh,table.cc} .
    record build.fxt -- bash build.sh
    report --by command --per-second build.fxt
    cat <<'E2'
The compiler (`cc1plus`) has the larger part, as expected, and not all of the time: for seconds nothing runs but `table`, a tool of
the build's own. One process cannot use the other CPUs, so the build waits for it. What does it do?

E2
    view --comm table --tree --min 30 build.fxt
    cat <<'E2'
`read_file` makes a regular expression (`_Compiler`). By its lines:

E2
    view --annotate read_file build.fxt
    cat <<'E2'
**Answer:** `std::regex pattern` stands inside the loop, and so is compiled for each line of each file. It belongs before the loop.

The same as a picture. Above, a column is a part of the time, and the darker the more samples; below, a frame is as wide as its
time:

```console
# profctl flamegraph build.fxt -o build.html --open
```

E2
    picture build.fxt all by=command all 'The flame graph of the build: its heat map above, cc1plus, as and table side by side below'
    cat <<'E2'
A click on `table` makes it as wide as the page, and a search colours what it finds and says its share:

E2
    picture build.fxt table 'by=command&search=_Compiler' table 'The flame graph of table alone, in which _Compiler is found'
}

hidden_function() {
    cat <<'E2'
## Python, and a function that nobody wrote

`words.py` counts the different words of a text, and writes JSON. Its author suspects JSON.

E2
    cp "$programs/words.py" .
    record words.fxt -- /usr/bin/python3 words.py
    report -n 5 words.fxt
    local hot
    hot=$(profctl report --json --module 'python3*' -n 0 words.fxt 2>/dev/null | python3 -c '
import json, sys
print(max((r for r in json.load(sys.stdin)["rows"] if "+0x" in r["name"] and r["self"] > 0), key=lambda r: r["self"])["name"])')
    cat <<E2
Debian's \`python3\` is stripped: a function of which the file tells no name is one row all the same, by where it
begins. \`$hot\` compares texts. Who calls it?

E2
    view --callers "$hot" --min 5 words.fxt
    cat <<'E2'
The interpreter's loop (`_PyEval_EvalFrameDefault`) does, without a call of a function in between: so it is an operator of Python's that
looks through texts one by one, and no JSON. `words.py` has one such operator, `word not in seen`, and `seen` is a list.
`set.py` is `words.py` with a set in its place.

E2
    sed 's/seen = \[\]/seen = set()/; s/seen.append/seen.add/' words.py >set.py
    record set.fxt -- /usr/bin/python3 set.py
    view -n 3 --by command words.fxt
    view -n 3 --by command set.fxt
    cat <<'E2'
**Answer:** `in` of a list, 40,000 times. With a set the time is gone. (With `DEBUGINFOD_URLS=https://debuginfod.debian.net`, `--inline` has the
function's name.)

E2
}

node_program() {
    cat <<'E2'
## Node

`orders.js` sums orders by customer, and is slow.

E2
    cp "$programs/orders.js" .
    record orders.fxt -- node orders.js
    report -n 3 orders.fxt
    cat <<'E2'
The report says itself what is missing, and how to have it: V8 makes code at run time, which has no names unless `node` is told to
write them down.

E2
    record named.fxt -- node --perf-prof orders.js
    view -n 4 named.fxt
    cat <<'E2'
`JS:*total` is optimised code (`*`) of the function that begins in line 17, with what V8 has inlined into it: `findCustomer`. It compares
texts (`Builtins_StringEqual`):

E2
    view --callers Builtins_StringEqual --min 5 named.fxt
    cat <<'E2'
**Answer:** `findCustomer` looks at all customers for each order; a `Map` would not. (V8's interpreter and builtins have no call-frame
information, so stacks through them follow their frame pointers, and are not called complete.)

E2
}

stripped_tools() {
    cat <<'E2'
## A pipeline of stripped tools

`pipe.sh` is one line, `sort blob | gzip -9 | wc -c`, and `blob` has 40 MB of random letters. Which of the three holds up the others, and why?

E2
    echo 'sort blob | gzip -9 | wc -c' >pipe.sh
    head -c 30000000 /dev/urandom | base64 >blob
    record pipe.fxt -- bash pipe.sh
    report --by command pipe.fxt
    cat <<'E2'
`gzip` has most of the time, and what comes before it has to wait. None of these programs has symbols:

E2
    view -n 4 --comm gzip pipe.fxt
    local hot
    hot=$(profctl report --json -n 1 --module gzip pipe.fxt 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][0]["name"])')
    cat <<E2
One function, \`$hot\`, has the largest part. Its instructions:

E2
    printf '```console\n# profctl report --annotate %s pipe.fxt\n...\n' "$hot"
    profctl report --annotate "$hot" pipe.fxt 2>/dev/null | awk -v RS= -v ORS='\n\n' 'NR > 3 { print last } { last = $0 }' |
        sed '$d' | awk 'NR == 1 { print; next } { lines[NR] = $0; if ($1 ~ /[.]/ && $1 + 0 > most) { most = $1 + 0; at = NR } }
            END { for (i = at - 10; i <= at + 6; i++) if (i in lines) print lines[i] }'
    printf '...\n```\n\n'
    cat <<'E2'
A loop of a few instructions follows a chain and compares a byte at each place: gzip looks for the longest match, which `-9` says it must do
at any price. The text is random, so there is little to be found.

**Answer:** the search that `-9` asks for; `-1` cuts it short.

E2
}

contended_lock() {
    cat <<'E2'
## Lock contention

`accounts` has eight threads that move money, and takes more CPU time than that should.

E2
    gcc -O1 -g -pthread -o accounts "$programs/accounts.c"
    record lock.fxt -- ./accounts
    report -n 6 lock.fxt
    cat <<'E2'
Locking and unlocking, and the kernel's part of it (`futex`), is where the time is. On whose behalf?

E2
    view --callers 'pthread_mutex_lock' --min 3 lock.fxt
    view --callees move --min 10 lock.fxt
    cat <<'E2'
A lock that is free takes no system call. Here `__lll_lock_wait` and `__lll_lock_wake` put threads to sleep and wake them, for
two additions. It is not the fault of one thread:

E2
    view --by thread lock.fxt
    cat <<'E2'
Ticks say what the lock costs. How long threads are asleep for it is in no tick, and with `--wall` in the recording all the same:

E2
    record lock-waits.fxt --wall -- ./accounts
    view --event off-cpu --callers futex_do_wait --min 10 lock-waits.fxt
    cat <<'E2'
`main` waits for its threads, as it should. All the other time that anything waits is for the lock, in `move`.

**Answer:** `move` takes one lock for all accounts. Locks by account, or sums by thread, would let the threads run at one time.

E2
}

redis_under_load() {
    cat <<'E2'
## Redis under load

A server's latency has grown. It is recorded for three seconds, as it runs, with all that runs beside it.

E2
    redis-server --port 0 --unixsocket "$WORK/redis.sock" --save '' --appendonly no --daemonize no >"$WORK/redis.log" 2>&1 &
    server=$!
    wait_until 10 test -S "$WORK/redis.sock"
    redis-benchmark -s "$WORK/redis.sock" -q -n 60000 -r 30000 -P 16 set user:__rand_int__:profile x >/dev/null
    (
        trap 'kill $(jobs -p) 2>/dev/null' EXIT
        redis-benchmark -s "$WORK/redis.sock" -q -c 10 -l -t get -r 30000 >/dev/null 2>&1 &
        while redis-cli -s "$WORK/redis.sock" keys 'user:*99:profile' >/dev/null; do sleep 0.01; done
    ) &
    client=$!
    sleep 1
    record redis.fxt -d 3
    report --by command -n 5 redis.fxt
    view --comm redis-server --tree --min 8 redis.fxt
    cat <<'E2'
**Answer:** the largest part of the server's time goes to `keysCommand`, which compares every key with a glob (`stringmatchlen`), while all
others wait. Some client (the many `redis-cli`) asks `KEYS` again and again; `SCAN`, or a set with the names, would not stop the server.
E2
    kill "$client"
    wait "$client" 2>/dev/null || true
    client=
}

daemon_start "$BIN" "$WORK"
cd "$WORK"
{
    cat <<'E2'
# A tour

Six questions and their answers, each by `profctl report` alone. This page is made by `scripts/tour.sh`, from recordings of the
programs in `scripts/tour/`, so the numbers below are real; `...` stands for what is left out, and
profctl-report(1) explains each column.

<!-- not run, nor is another block of this page: scripts/tour.sh runs them, and writes here what they print -->

E2
    slow_build
    hidden_function
    node_program
    stripped_tools
    contended_lock
    redis_under_load
} >tour.md
# A line does not end in a space.
sed -i 's/ *$//' tour.md
mv tour.md "$page"
echo "$page: $(grep -c '^# profctl report' "$page") views of $(grep -c '^# profctl record' "$page") recordings" >&2
