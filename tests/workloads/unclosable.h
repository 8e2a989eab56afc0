/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define UNCLOSABLE_MTIME_S 4711 /* of the file that unclosable runs: after 1970 */
