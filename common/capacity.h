/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CAPACITY(count) is the capacity of a table or buffer whose size is a bound, not a meaning:
 * `count`, or a 64th of it in a build for fuzzing. A fuzz target makes and frees the whole
 * recording for each input, and an input of some KiB fills the small tables, so it reaches their
 * bounds as well. `count` is a power of two of at least 64, and the result is one too.
 */
#ifdef CPU_PROFILERD_SMALL_TABLES
#define CAPACITY(count) ((count) / 64)
#else
#define CAPACITY(count) (count)
#endif
