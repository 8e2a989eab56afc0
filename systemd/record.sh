#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# record PROFCTL NAME: what cpu-profilerd-record@NAME.service runs. The name of a recording tells its time, so
# that their order is the order of their names. Status 78 (EX_CONFIG): the config is wrong, or has no end.
set -eu
cd "$STATE_DIRECTORY"
config=/etc/cpu-profilerd/record/$2.json
"$1" check "$config" >/dev/null || exit 78
# As JSON the values are those that the session would have: the administrator's limit of daemon.json is an end too.
if ! "$1" check --json "$config" | grep -q '"max_duration_s": *[1-9]'; then
    echo "$config: max_duration_s is missing: a recording on a schedule needs an end, since all others wait for it;" \
        'add one, such as "max_duration_s": 60' >&2
    exit 78
fi
exec "$1" record --config "$config" -o "$2-$(date -u +%Y%m%dT%H%M%SZ).fxt.gz"
