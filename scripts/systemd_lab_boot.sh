#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What scripts/systemd_lab.sh runs in the new namespaces, as pid 1: makes the root and becomes systemd.
#   systemd_lab_boot.sh FOLDER SOURCE_DIR SETUP
set -eu
folder=$1
source_dir=$2
setup=$3
path=/usr/sbin:/usr/bin:/sbin:/bin
root=$folder/root

# overlay LOWER NAME WHERE [HIDDEN...]: what is below LOWER, at WHERE, with changes in memory. HIDDEN are names in LOWER
# in whose place there is an empty folder: on some filesystems nothing can be mounted on a folder of LOWER.
overlay() {
    local lower=$1 upper=$folder/changes/$2 where=$3 name
    shift 3
    mkdir "$upper" "$upper.work"
    for name in "$@"; do
        mknod "$upper/$name" c 0 0 # a whiteout
    done
    mount -t overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$upper.work" overlay "$where"
    for name in "$@"; do
        mkdir -m 755 "$where/$name"
    done
}

until [ -e "$folder/go" ]; do
    sleep 0.01
done
mkdir -p "$folder/changes" "$root"
mount -t tmpfs tmpfs "$folder/changes"
overlay "${LAB_BASE:-/}" root "$root" proc sys dev run tmp
chmod 755 "$root"

mount -t proc proc "$root/proc"
for name in sys sysrq-trigger; do
    if [ -e "$root/proc/$name" ]; then
        mount --bind "$root/proc/$name" "$root/proc/$name"
        mount -o remount,bind,ro "$root/proc/$name"
    fi
done
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"

# Nodes of its own: a change of one's mode must not change the machine's.
while read -r name minor; do
    mknod -m 666 "$root/dev/$name" c 1 "$minor"
done <<'NODES'
null 3
zero 5
full 7
random 8
urandom 9
console 3
NODES
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

mkdir -p "$root$source_dir"
overlay "$source_dir" source "$root$source_dir"

# A machine of its own, which starts nothing of this one's.
hostname lab
echo lab >"$root/etc/hostname"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
rm -rf "$root/etc/systemd/system"
mkdir "$root/etc/systemd/system"

chroot "$root" env -i PATH="$path" bash -euc "$setup"

mkdir "$root/.old"
cd "$root"
pivot_root . .old
umount -l /.old
rmdir /.old
rights=-sys_module,-sys_time,-sys_boot,-audit_control,-audit_read,-sys_rawio
exec setpriv --bounding-set "$rights" env -i container=lab PATH="$path" \
    /lib/systemd/systemd --system --unit=basic.target
