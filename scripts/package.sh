#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Debian packages of these sources, as they are here, in a folder of its own: installs what that needs where
# it is missing (as root), and leaves the packages, with .changes and .buildinfo, in OUTPUT_DIR. The same sources give
# the same bytes, wherever and whenever they are built.
#
#   scripts/package.sh [OUTPUT_DIR]      default: build/packages
set -euo pipefail

source_dir=$(cd "${0%/*}/.." && pwd)
output=$(realpath -m "${1:-$source_dir/build/packages}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$source_dir/scripts/install-deps.sh" --package

# The mode of a copied file is the package's, whatever umask the clone was made with.
mkdir "$work/source"
tar -C "$source_dir" --exclude=./build --exclude=./.git --mode=u=rwX,go=rX -cf - . | tar -C "$work/source" -xf -
cd "$work/source"
version=$(dpkg-parsechangelog --show-field Version)
[ "$version" = "$(sed -n 's/^project(cpu-profilerd VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)" ] || {
    echo "$0: debian/changelog and CMakeLists.txt have different versions" >&2
    exit 1
}
if ! LC_ALL=C.UTF-8 dpkg-buildpackage --build=binary --no-sign >"$work/log" 2>&1; then
    tail -n 60 "$work/log" >&2
    exit 1
fi

mkdir -p "$output"
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$output/"
ls "$output"/*.deb
