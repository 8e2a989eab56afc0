#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Which file may include what. The first line of `layers` whose pattern matches a file's path holds for it: the
# groups of our own headers that it may include, then the groups of library headers beside libc's. A header
# belongs to the group that set_header_group() finds; docs/architecture.md has the picture.
#
# A room is a folder of the daemon or of the client: its door (the headers in include/) is a group of its name, and what
# else it has is its own. A line lists only rooms of lines above it, so there is no circle.
#
# Before it judges the sources the check judges itself: in a small tree of its own it must accept what is
# allowed and find one forbidden include of each kind.
. "${0%/*}/lib.sh"

layers='
common/json.*                 common json                             | cjson
common/confine.*              common                                  | seccomp kernel
common/kernel_filesystem.*      common                                  | kernel
common/thread_news.h          common                                  | kernel
common/*                      common                                  |
daemon/fxt/*                                                          |
daemon/log/*                  common                                  | systemd
daemon/config/*               common json                             | cjson
daemon/symbolize/debug_frame.* common                                 | elf zlib
daemon/symbolize/mini_debug.*  common                                 | elf lzma
daemon/symbolize/code_decoder.* common                                | zydis
daemon/symbolize/entry_code.*  common                                 | zydis
daemon/symbolize/disassembly.* common                                 | zydis
daemon/symbolize/*            common                                  | elf
daemon/sample/*               common symbolize                        |
daemon/perf/*                 common                                  | perf_event
daemon/books/*                common perf                             |
daemon/process/proc_cgroups.* common config                           | kernel
daemon/process/*              common config                           |
daemon/modules/*              common symbolize process                | kernel
daemon/trace/*                common fxt sample symbolize process modules |
daemon/stack/*                common sample config symbolize perf process modules |
daemon/sampler/*              common sample config perf books process trace stack | kernel
daemon/session/*              common log config perf books modules trace sampler | systemd
daemon/control/*              common json log config perf process modules session | systemd cjson
daemon/rights.*               common main                             | seccomp kernel
daemon/*                      common log config process modules session control main | systemd kernel
client/examples/*                                                     | profctl
client/library/*              common json                             | cjson
client/cli/*                  common json                             | cjson zlib
client/status/*               common json library cli                 | cjson
client/recording/*            common json fxt                         | cjson zlib
client/profile/demangle.*     common                                  | iberty
client/profile/*              common json config fxt recording        | cjson
client/lines/*                common symbolize profile                | elf kernel
client/doctor/*               common json library cli status recording profile lines | cjson kernel perf_event
client/naming/*               common config cli doctor                | kernel
client/attach/*               common json library cli status doctor   | cjson
client/export/*               common json fxt cli profile lines           | cjson protobuf perf_event
client/packets/*              common fxt recording profile export     |
client/read/*                 common json library cli status recording attach packets | cjson
client/record/*               common json config library cli status recording doctor naming attach packets | cjson
client/top/*                  common json fxt library cli status recording profile doctor packets record | cjson ncurses
client/report/*               common json cli profile lines doctor    | cjson
client/diff/*                 common json cli profile report         | cjson
client/dump/*                 common json fxt cli                     | cjson
client/view/*                 common                                  |
client/flamegraph/*           common json cli profile                 | cjson zlib
client/push/*                 common json cli recording profile lines export | cjson curl protobuf zlib
client/merge/*                common json cli recording fxt              | cjson
client/verbs/*                common json config fxt library cli status recording profile lines doctor attach read record top report diff export dump view flamegraph push merge | cjson
'

# Both leave their answer in `group`, as set_rule() does in `rule`: a subshell for each include would take seconds.
set_header_group() {
    case $1 in
    common/json.h) group=json ;;
    common/*) group=common ;;
    client/include/*) group=library ;;
    daemon/*/include/* | client/*/include/*)
        group=${1#*/}
        group=${group%%/*}
        ;;
    daemon/*/* | client/*)
        group=${1#*/}
        group=inside_${group%%/*}
        ;;
    daemon/*) group=main ;;
    esac
}

# Everything that is not named here is unknown and so forbidden: a new dependency is a decision.
set_library_group() {
    case $1 in
    systemd/*) group=systemd ;;
    cjson/* | cJSON.h) group=cjson ;;
    gelf.h | libelf.h | dwarf.h | elfutils/*) group=elf ;;
    seccomp.h) group=seccomp ;;
    zlib.h) group=zlib ;;
    curl/*) group=curl ;;
    lzma.h) group=lzma ;;
    Zydis/*) group=zydis ;;
    curses.h | term.h) group=ncurses ;;
    protobuf-c/* | *.pb-c.h) group=protobuf ;;
    libiberty/demangle.h) group=iberty ;;
    profctl.h) group=profctl ;;
    linux/perf_event.h) group=perf_event ;;
    linux/* | asm/*) group=kernel ;;
    sys/* | netinet/* | arpa/*) group=libc ;;
    assert.h | ctype.h | dirent.h | dlfcn.h | elf.h | endian.h | err.h | errno.h | fcntl.h | fnmatch.h | fts.h | \
        getopt.h | glob.h | grp.h | inttypes.h | langinfo.h | libgen.h | limits.h | link.h | locale.h | malloc.h | \
        math.h | mntent.h | poll.h | pthread.h | pwd.h | sched.h | search.h | semaphore.h | setjmp.h | signal.h | spawn.h | \
        stdalign.h | stdarg.h | stdatomic.h | stdbool.h | stddef.h | stdint.h | stdio.h | stdlib.h | \
        stdnoreturn.h | string.h | strings.h | syscall.h | termios.h | threads.h | time.h | uchar.h | \
        unistd.h | utime.h | wchar.h | wctype.h | x86intrin.h) group=libc ;;
    *) group=unknown ;;
    esac
}

# set_rule FILE: sets `rule` to its line of the table, as "groups | libraries".
set_rule() {
    rule=
    local pattern rest
    while read -r pattern rest; do
        # The pattern is one: no quotes.
        # shellcheck disable=SC2053
        if [ -n "$pattern" ] && [[ $1 == $pattern ]]; then
            local room=${1#*/}
            [[ $1 == daemon/*/* || $1 == client/*/* ]] && rest="inside_${room%%/*} ${room%%/*} $rest"
            rule=$rest
            return
        fi
    done <<<"$layers"
}

# check_tree: prints what is forbidden below the current folder; status 1 if anything is.
check_tree() {
    local -A group_of=() rule_of=()
    local path file line text header group rule bad=0
    while read -r path; do
        set_header_group "$path"
        header=${path##*/}
        if [ -n "${group_of[$header]+taken}" ]; then
            echo "$path: another header has this name, and which of them is included is up to chance"
            bad=1
        fi
        group_of[$header]=$group
    done < <(find common daemon client -name '*.h' | sort)

    while IFS=: read -r file line text; do
        header=${text#*[\"<]}
        header=${header%%[\">]*}
        if [[ $header == */../* || $header == ../* ]]; then
            echo "$file:$line: ../ in an include; a target's include folders say what is visible"
            bad=1
            continue
        fi
        if [[ $file == tests/* ]]; then
            continue
        fi
        if [ -z "${rule_of[$file]+known}" ]; then
            set_rule "$file"
            rule_of[$file]=$rule
        fi
        if [[ $text == *\"* ]]; then
            group=${group_of[$header]:-unknown}
            [[ " ${rule_of[$file]%%|*} " == *" $group "* ]] && continue
        else
            set_library_group "$header"
            [[ $group == libc || " ${rule_of[$file]##*|} " == *" $group "* ]] && continue
        fi
        echo "$file:$line: may not include $header (group $group); allowed: ${rule_of[$file]}"
        bad=1
    done < <(find common daemon client tests -name '*.[ch]' -print0 |
        xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include')
    return "$bad"
}

# Each room in a line has a line of its own above it.
expect_order() {
    local pattern rest room above=" common json main "
    while read -r pattern rest; do
        [[ $pattern == daemon/* || $pattern == client/* ]] || continue
        for room in ${rest%%|*}; do
            [[ $above == *" $room "* ]] || complain "layers: $pattern may include $room, which is not above it"
        done
        room=${pattern#*/}
        above+="${room%%/*} "
    done <<<"$layers"
}

judge_myself() {
    local trial header cases='' number=0 verdict file include found
    trial=$(mktemp -d)
    cd "$trial"
    mkdir -p common daemon/{fxt,symbolize,config,log,session,sample,perf,sampler,trace,control,modules}/include \
        client/include client/{export,profile,verbs,report}/include client/examples tests/unit
    for header in common/{fault,json}.h daemon/daemon.h daemon/log/include/log.h daemon/session/include/session.h \
        daemon/sample/include/sample.h daemon/perf/perf_event.h daemon/perf/include/perf_ring.h daemon/fxt/include/fxt_reader.h \
        daemon/symbolize/include/symbol_table.h daemon/symbolize/eh_frame.h daemon/config/include/session_config.h \
        client/include/profctl.h client/profile/include/profile.h client/profile/names.h client/report/include/report.h; do
        : >"$header"
    done
    # A file for each include: x.c is x12.c, but the name of another file is a part of its rule.
    while read -r verdict file include; do
        number=$((number + 1))
        file=${file/%x.c/x$number.c}
        [ ! -e "$file" ] || complain "the check itself: two cases for $file"
        echo "#include $include" >"$file"
        cases+="$verdict $file $include"$'\n'
    done <<'CASES'
ok  common/x.c             "fault.h"
ok  common/x.c             <errno.h>
bad common/x.c             "json.h"
ok  common/confine.c       <seccomp.h>
bad common/x.c             <seccomp.h>
bad daemon/modules/x.c     <seccomp.h>
bad common/x.c             <cjson/cJSON.h>
bad common/x.c             "sample.h"
bad common/x.c             <sqlite3.h>
bad common/x.c             "no_such_header.h"
ok  daemon/fxt/x.c         "fxt_reader.h"
bad daemon/fxt/x.c         "fault.h"
bad daemon/fxt/x.c         "sample.h"
bad daemon/fxt/x.c         <linux/types.h>
ok  daemon/symbolize/x.c   <gelf.h>
ok  daemon/symbolize/x.c   "fault.h"
ok  daemon/symbolize/x.c   "eh_frame.h"
bad daemon/symbolize/x.c   "fxt_reader.h"
bad daemon/symbolize/x.c   <systemd/sd-event.h>
bad daemon/modules/x.c     "eh_frame.h"
ok  daemon/config/x.c      <cjson/cJSON.h>
bad daemon/config/x.c      "session.h"
ok  daemon/session/x.c     <systemd/sd-event.h>
ok  daemon/session/x.c     "log.h"
bad daemon/session/x.c     "daemon.h"
bad daemon/session/x.c     "fxt_reader.h"
ok  daemon/sampler/x.c     "perf_ring.h"
bad daemon/sampler/x.c     "perf_event.h"
bad daemon/sampler/x.c     "log.h"
bad daemon/sampler/x.c     "session.h"
bad daemon/sampler/x.c     <systemd/sd-event.h>
bad daemon/sampler/x.c     <linux/perf_event.h>
bad daemon/sampler/x.c     "fxt_reader.h"
bad daemon/sampler/x.c     <gelf.h>
bad daemon/sampler/x.c     <cjson/cJSON.h>
bad daemon/sampler/x.c     "profctl.h"
ok  daemon/perf/x.c        <linux/perf_event.h>
bad daemon/perf/x.c        "symbol_table.h"
ok  daemon/trace/x.c       "fxt_reader.h"
bad daemon/trace/x.c       "perf_ring.h"
ok  daemon/control/x.c     <cjson/cJSON.h>
ok  daemon/control/x.c     "log.h"
ok  daemon/x.c             "daemon.h"
ok  daemon/x.c             "session.h"
bad daemon/x.c             "sample.h"
ok  client/verbs/x.c       "session_config.h"
ok  client/verbs/x.c       "fxt_reader.h"
ok  client/export/x.c      "profile.h"
ok  client/profile/x.c     "names.h"
bad client/export/x.c      "names.h"
bad client/export/x.c      "report.h"
bad client/profile/x.c     "report.h"
bad client/profile/x.c     "profctl.h"
bad client/export/x.c      "session_config.h"
bad client/export/x.c      "sample.h"
bad client/export/x.c      "log.h"
bad client/export/x.c      <systemd/sd-event.h>
bad client/export/x.c      <seccomp.h>
bad client/export/x.c      "../include/profctl.h"
ok  client/examples/x.c    <profctl.h>
bad client/examples/x.c    "profctl.h"
bad client/verbs/x.c       <profctl.h>
ok  tests/unit/x.c         "sample.h"
bad tests/unit/x.c         "../../daemon/sample.h"
CASES
    found=$(check_tree) || true
    while read -r verdict file include; do
        case $'\n'$found in
        *$'\n'"$file:"*) [ "$verdict" = bad ] || complain "the check itself: #include $include in $file is refused" ;;
        *) [ "$verdict" = ok ] || complain "the check itself: #include $include in $file is accepted" ;;
        esac
    done <<<"${cases%$'\n'}"
    : >client/fault.h
    if check_tree >/dev/null; then
        complain "the check itself: two headers of one name are accepted"
    fi
    cd "$SOURCE_DIR"
    rm -rf "$trial"
}

expect_order
judge_myself
check_tree || failed=1
exit "$failed"
