#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# rotate NAME: lets the group read the recordings of NAME, which profctl makes for its user alone, hands new ones to
# cpu-profilerd-push@NAME.service where that is configured, and removes all but the newest $KEEP. What recordings that
# failed have left (.partial-*) is kept and removed likewise, by itself: it takes no recording's place.
set -eu
cd "$STATE_DIRECTORY"
# An escaped name has backslashes, "my\x20app", which stand for themselves.
named=$(printf '%s' "$1" | sed 's/\\/\\\\/g')
find . -maxdepth 1 -type f \( -name "$named-*.fxt.gz" -o -name "$named-*.fxt.gz.partial-*" \) -exec chmod 640 {} +

# Copies go to a folder whose group is the sender's, as they do too. `.spooled` has the name of the last one. The sender
# may write there: neither cp nor mv follows a link that it has put in their way.
spool() {
    folder=/var/spool/cpu-profilerd/$1
    (umask 0007 && mkdir -p "$folder") || return 1
    last=$(cat .spooled 2>/dev/null || true)
    newest=$(find . -maxdepth 1 -type f -name "$named-*.fxt.gz" | sort | tail -n 1)
    find . -maxdepth 1 -type f -name "$named-*.fxt.gz" | sort | while read -r recording; do
        name=${recording#./}
        # The first time the newest alone is sent.
        if [ -n "$last" ] && ! expr "x$name" '>' "x$last" >/dev/null; then
            continue
        elif [ -z "$last" ] && [ "$recording" != "$newest" ]; then
            continue
        elif [ "$(find "$folder" -maxdepth 1 -name '*.fxt.gz' | wc -l)" -ge 1000 ]; then
            echo "$name: is not sent: 1000 recordings wait in $folder; see cpu-profilerd-push@$1.path" >&2
        elif ! cp --remove-destination --no-target-directory "$name" "$folder/.$name.part" ||
            ! mv --no-target-directory "$folder/.$name.part" "$folder/$name"; then
            echo "$name: cannot be copied to $folder, and is sent later" >&2
            return 1
        fi
        echo "$name" >.spooled
    done
}
if [ -e "/etc/cpu-profilerd/push/$1.conf" ]; then
    spool "$1" || true
fi

# Names tell their time, so one that is still written is the newest.
for ending in fxt.gz 'fxt.gz.partial-*'; do
    find . -maxdepth 1 -type f -name "$named-*.$ending" | sort | head -n "-$KEEP" | while read -r recording; do
        rm -- "$recording"
    done
done
