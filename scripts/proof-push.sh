#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves `profctl push` and `export --format ndjson` against programs that are not ours, of the npm registry: a store of
# fastify and protobufjs with the limits of Grafana Pyroscope, and ClickHouse as chdb. A recording that the real daemon
# made arrives with the report's total and functions; SQL over its rows has the same. Then a day of 100 machines, each with
# a recording of a minute an hour at 99 Hz, is sent by a service's command line for each: nothing lost, nothing twice, and
# what it took. Prints what it measured; status 1 where anything differs.
#
#   scripts/proof-push.sh [MACHINES]     100
#
# Not part of the tests: some readers come from the npm registry, into a temporary folder (NPM_FOLDER=... keeps them). Needs
# the preset `release`, root, node and npm. All traffic but npm's is to 127.0.0.1.
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
npm_folder=${NPM_FOLDER:-$work/npm}
for program in node npm python3 unshare; do
    command -v "$program" >/dev/null || die "needs $program"
done
need_built "$bin/cpu-profilerd" "$bin/profctl"
mkdir -p "$npm_folder"
npm install --prefix "$npm_folder" --no-audit --no-fund --silent protobufjs@8 fastify@5 chdb >/dev/null || die "npm"

# So that the recording has a host whose name has room for a number.
if [ "$(hostname)" != machine000 ]; then
    NPM_FOLDER=$npm_folder unshare --uts sh -c 'hostname machine000 && exec "$@"' sh "$0" "$@"
    exit
fi
echo "== recording a minute at 99 Hz"
daemon_start "$bin" "$work"
for _ in 1 2; do
    (while [ ! -e "$work/enough" ]; do python3 -m compileall -q -f /usr/lib/python3.11/json /usr/lib/python3.11/email >/dev/null 2>&1; gzip -c "$bin/profctl" >/dev/null; done) &
    loads+=($!)
done
"$bin/profctl" record -F 99 -d "${SECONDS_RECORDED:-60}" -o "$work/a.fxt.gz" | head -n 1
stop_loads
python3 "$source_dir/scripts/proof-push/proof.py" "$bin/profctl" "$npm_folder/node_modules" "$work" "${1:-100}" || die "see above"
echo "all arrived, nothing twice"
