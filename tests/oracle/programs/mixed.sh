# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
fibonacci() {
    if [ "$1" -lt 2 ]; then
        result=$1
        return
    fi
    local n=$1 first
    fibonacci $((n - 1))
    first=$result
    fibonacci $((n - 2))
    result=$((first + result))
}

while :; do
    fibonacci 9
    text=
    for ((i = 0; i < 200; i++)); do
        text+="word$i "
    done
    text=${text//word/other}
    [[ $text =~ (other1[0-9]+).*(other5) ]]
    declare -A table=()
    for word in $text; do
        table[$word]=${#word}
    done
    result=${#table[@]}
done
