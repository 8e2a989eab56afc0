#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every C file is as clang-format leaves it.
. "${0%/*}/lib.sh"

c_files | xargs clang-format --dry-run -Werror
