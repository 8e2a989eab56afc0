# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by proof-NAME.sh, after `set -euo pipefail`: where things are, and how such a proof ends. `work` is a
# private folder; the pids in `loads` are of children that end when $work/enough is there. However the proof
# ends, so do they, and the daemon.
source_dir=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
bin=$source_dir/build/release/bin
work=$(mktemp -d)
loads=()

# shellcheck source=scripts/daemon.sh
. "$source_dir/scripts/daemon.sh"

stop_loads() {
    local load
    touch "$work/enough"
    for load in "${loads[@]}"; do
        wait "$load" || true
    done
    loads=()
}

clean_up() {
    stop_loads
    daemon_stop || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    echo "FAIL $*" >&2
    exit 1
}

# need_built PROGRAM...: paths.
need_built() {
    local program
    for program in "$@"; do
        [ -x "$program" ] || die "no $program: build the presets 'release' and 'dev'"
    done
}
