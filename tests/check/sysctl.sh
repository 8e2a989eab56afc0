#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed sysctl.d file lowers kernel.perf_event_paranoid only where no other file says anything of it. The
# programs that apply such files at boot, systemd-sysctl and procps's sysctl, run in a mount namespace with folders
# of their own, and with a plain file in the place of the kernel's: nothing of the machine changes.
. "${0%/*}/lib.sh"

if [ "${1:-}" != inside ]; then
    if ! unshare --mount true 2>/dev/null; then
        echo "SKIP: no mount namespace can be made, which needs root"
        exit 77
    fi
    if [ ! -x /lib/systemd/systemd-sysctl ] && ! command -v sysctl >/dev/null; then
        echo "SKIP: neither systemd-sysctl nor sysctl is installed"
        exit 77
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cmake --install "$BUILD_DIR" --prefix "$work/installed" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    unshare --mount "$0" inside "$work"
    exit
fi

work=$2
ours=$(ls "$work"/installed/lib/sysctl.d/*.conf)
for folder in /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d /usr/local/lib; do
    # A folder that the machine does not have is looked for in vain, there as here.
    if [ -d "$folder" ]; then
        mount -t tmpfs none "$folder" || complain "no tmpfs at $folder"
    fi
done
[ -e /etc/sysctl.conf ] && mount --bind /dev/null /etc/sysctl.conf
mkdir -p /usr/local/lib/sysctl.d
cp "$ours" /usr/local/lib/sysctl.d
echo 4 >"$work/value"
mount --bind "$work/value" /proc/sys/kernel/perf_event_paranoid || complain "the kernel's own file cannot be hidden"

apply_by() {
    case $1 in
    systemd-sysctl) /lib/systemd/systemd-sysctl ;;
    sysctl) sysctl --system ;;
    esac >"$work/log" 2>&1 || complain "$1 fails: $(cat "$work/log")"
}

# expect VALUE SENTENCE: what the kernel would have after the boot.
expect() {
    local program
    for program in systemd-sysctl sysctl; do
        [ -x /lib/systemd/systemd-sysctl ] || [ "$program" = sysctl ] || continue
        command -v sysctl >/dev/null || [ "$program" = systemd-sysctl ] || continue
        echo 4 >"$work/value"
        apply_by "$program"
        [ "$(cat "$work/value")" = "$1" ] ||
            complain "$program: $2: the value is $(cat "$work/value"), not $1; $(cat "$work/log")"
    done
}

expect 2 "nothing but our file"
for file in /etc/sysctl.d/00-admin.conf /etc/sysctl.d/10-hardening.conf /etc/sysctl.d/60-site.conf \
    /etc/sysctl.d/99-sysctl.conf /run/sysctl.d/05-site.conf /usr/lib/sysctl.d/00-distribution.conf \
    /usr/lib/sysctl.d/50-default.conf /usr/local/lib/sysctl.d/40-site.conf; do
    [ -d "${file%/*}" ] || continue
    for key in kernel.perf_event_paranoid kernel/perf_event_paranoid -kernel.perf_event_paranoid; do
        echo "$key = 3" >"$file"
        expect 3 "'$key = 3' in $file"
    done
    rm "$file"
done
expect 2 "the administrator's files are gone"
exit "$failed"
