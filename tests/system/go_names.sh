#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Go programs that are linked without symbols have the names that they have with them, each function of theirs:
# whichever linker puts them together, at a fixed address or not, with C in them or as a library for C. The
# oracle is nm, on the same program with symbols. Whole kinds of difference are go_names.py's.
set -u

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
for program in go gcc nm readelf python3; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing (scripts/install-deps.sh --test)"
    exit 77
done

cat >"$WORK/c.go" <<'GO'
package main

// static int twice(int n) { return n + n; }
// static void call_twice(int n) { twice(n); }
import "C"

//export go_twice
func go_twice(n C.int) C.int { C.call_twice(n); return n + n }
GO
cat >"$WORK/generic.go" <<'GO'
package main

//go:noinline
func apply[T any](do func(T), to T) { do(to) }

func init() {
	apply(func(n int) { println(n) }, 1)
	apply(func(s []string) { println(len(s)) }, nil)
}
GO
cp "$SOURCE_DIR/tests/oracle/programs/mixed.go" "$WORK/main.go"

# compare NAME OPTION...: of `go build`; the linker's own are in $link.
status=0
compare() {
    local name=$1
    shift
    (
        cd "$WORK" || exit 1
        export GO111MODULE=off
        go build -o "$name.whole" -ldflags="$link" "$@" && go build -o "$name" -ldflags="$link -s -w" "$@"
    ) || exit 1
    "$BUILD_DIR/bin/go_names_probe" "$WORK/$name" >"$WORK/table" || exit 1
    python3 "$SOURCE_DIR/tests/system/go_names.py" "$WORK/$name.whole" "$WORK/$name" "$WORK/table" || status=1
}

link=
compare exe main.go generic.go
compare pie -buildmode=pie main.go generic.go
compare exe_with_c main.go generic.go c.go
compare pie_with_c -buildmode=pie main.go generic.go c.go
compare library -buildmode=c-shared main.go generic.go c.go
link=-linkmode=external
compare exe_by_gcc main.go
compare pie_by_gcc -buildmode=pie main.go
exit "$status"
