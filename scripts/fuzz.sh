#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets of the presets `fuzz` and `fuzz-compare` until each has had so many executions since it was last
# built:
#   for preset in fuzz fuzz-compare; do cmake --preset $preset && cmake --build --preset $preset; done
#   scripts/fuzz.sh [--executions N] [--jobs N] [--folder FOLDER] [TARGET...]
# Without a TARGET it runs all, N (1) at a time, 1,000,000 executions each. FOLDER (build/fuzz/runs) keeps, for each
# target: corpus/, the inputs that reached something new; findings/, the inputs that broke it; log, what libFuzzer
# said of the last slice; state, the checksum of the programs with their executions, milliseconds and new inputs.
# The same command goes on with a run that was interrupted. Programs with another checksum begin at 0, with the
# corpus as it is. A finding that no longer breaks the program becomes a part of the corpus.
# Prints one line for each target. Exit status 1: there is a finding.
set -euo pipefail
cd "$(dirname "$0")/.."

slice_s=300       # between two writes of the state
timeout_s=25      # an input that takes longer is a finding
rss_limit_mb=2048 # so is one that takes more memory
# Freed blocks that AddressSanitizer keeps: more than an input frees, and they fit into a cache.
export ASAN_OPTIONS=quarantine_size_mb=4${ASAN_OPTIONS:+:$ASAN_OPTIONS}
# In nine of ten slices the program does not trace comparisons, which takes as long as all else, and
# - inputs are as long as the longest seed, and 4 KiB at least (libFuzzer's own rule), but for these targets;
declare -A length_max=([code_region]=256 [demangle]=256 [eh_frame]=1024 [elf_symbols]=2048 [kallsyms]=512
    [mini_debug]=512 [perf_map]=512 [perf_ring]=272 [profile]=1024 [ring_contents]=1024 [varlink]=1024)
# - for targets with thousands of features, libFuzzer does not weigh its corpus by how rare these are.
unweighed=" profile ring_contents "

usage() {
    echo "usage: $0 [--executions N] [--jobs N] [--folder FOLDER] [TARGET...]" >&2
    exit 2
}

executions=1000000
jobs=1
folder=build/fuzz/runs
targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --executions | --jobs | --folder)
        [ $# -ge 2 ] || usage
        case $1 in
        --executions) executions=$2 ;;
        --jobs) jobs=$2 ;;
        --folder) folder=$2 ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *)
        targets+=("$1")
        shift
        ;;
    esac
done
[[ $executions =~ ^[1-9][0-9]{0,8}$ && $jobs =~ ^[1-9][0-9]?$ ]] || usage
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -printf '%f\n' | sort)
fi
for target in "${targets[@]}"; do
    for preset in fuzz fuzz-compare; do
        if [ ! -x "build/$preset/bin/fuzz_$target" ]; then
            echo "$0: no build/$preset/bin/fuzz_$target: cmake --preset $preset && cmake --build --preset $preset" >&2
            exit 2
        fi
    done
done

# statistic LOG NAME: a number of libFuzzer's -print_final_stats, or 0.
statistic() {
    sed -n "s/^stat::$2: *//p" "$1" | tail -n 1 | grep . || echo 0
}

findings_of() {
    find "$1/findings" -type f | wc -l
}

# slice FOLDER TARGET NUMBER EXECUTIONS: runs the program for a while. Returns its exit status.
slice() {
    local own=$1 target=$2 number=$3 status=0 preset=fuzz-compare options=(-max_total_time="$slice_s" -runs="$4")
    if [ $((number % 10)) -ne 9 ]; then
        preset=fuzz
        [ -z "${length_max[$target]:-}" ] || options+=(-max_len="${length_max[$target]}")
        [[ $unweighed != *" $target "* ]] || options+=(-entropic=0)
    fi
    "$own/$preset" "${options[@]}" -timeout="$timeout_s" -rss_limit_mb="$rss_limit_mb" -print_final_stats=1 \
        -artifact_prefix="$own/findings/" "$own/corpus" "tests/fuzz/corpus/$target" >"$own/log" 2>&1 &
    child=$!
    # A signal for this shell ends the first wait; the second one has the program's own status.
    wait "$child" || status=$?
    if [ -n "$interrupted" ]; then
        kill -INT "$child" 2>/dev/null || true
        wait "$child" || true
        status=0
    fi
    child=
    return "$status"
}

# keep_findings FOLDER: what the program bears by now goes to the corpus.
keep_findings() {
    local finding
    for finding in "$1"/findings/*; do
        if [ -e "$finding" ] && "$1/fuzz" -timeout="$timeout_s" -rss_limit_mb="$rss_limit_mb" \
            -artifact_prefix="$1/again-" "$finding" >/dev/null 2>&1; then
            mv "$finding" "$1/corpus/"
        fi
    done
    rm -f "$1"/again-*
}

# fuzz TARGET: slices until it has had its executions, or a finding.
fuzz() {
    local target=$1 own=$folder/$1 number=0 status=0 preset sum count=0 ms=0 new=0 began known
    mkdir -p "$own/corpus" "$own/findings"
    # The programs are copied: a build that begins meanwhile does not change what runs.
    for preset in fuzz fuzz-compare; do
        cp "build/$preset/bin/fuzz_$target" "$own/$preset.new"
        mv "$own/$preset.new" "$own/$preset"
    done
    sum=$(cat "$own/fuzz" "$own/fuzz-compare" | sha256sum)
    sum=${sum%% *}
    keep_findings "$own"
    if [ -e "$own/state" ]; then
        read -r known count ms new <"$own/state"
        [ "$known" = "$sum" ] || count=0 ms=0 new=0
    fi
    while [ "$count" -lt "$executions" ] && [ "$status" -eq 0 ] && [ -z "$interrupted" ]; do
        began=$(date +%s%3N)
        slice "$own" "$target" "$number" $((executions - count)) || status=$?
        ms=$((ms + $(date +%s%3N) - began))
        count=$((count + $(statistic "$own/log" number_of_executed_units)))
        new=$((new + $(statistic "$own/log" new_units_added)))
        echo "$sum $count $ms $new" >"$own/state"
        number=$((number + 1))
    done
    printf '%-16s %11d executions %7d s %8d /s %3d findings %6d new inputs%s\n' "$target" "$count" $((ms / 1000)) \
        $((count * 1000 / (ms > 0 ? ms : 1))) "$(findings_of "$own")" "$new" \
        "$([ "$status" -eq 0 ] || echo ", ended with status $status: $own/log")"
    [ "$status" -eq 0 ] && [ "$(findings_of "$own")" -eq 0 ]
}

child=
interrupted=
on_signal() {
    interrupted=1
    # shellcheck disable=SC2046 # pids
    kill -TERM $(jobs -p) 2>/dev/null || true
}
trap on_signal INT TERM

failed=0
running=0
for target in "${targets[@]}"; do
    [ -z "$interrupted" ] || break
    # In a shell of its own, which has the signal from this one.
    (
        trap 'interrupted=1; [ -z "$child" ] || kill -INT "$child" 2>/dev/null || true' INT TERM
        fuzz "$target"
    ) &
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
done
while [ -n "$(jobs -pr)" ]; do
    wait -n || failed=1
done
[ -z "$interrupted" ] || exit 130
exit "$failed"
