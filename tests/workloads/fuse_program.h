/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define FUSE_PROGRAM_MTIME_S 4711 /* of the file that fuse_program runs: after 1970 */
