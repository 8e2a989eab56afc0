/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A recording of a process with three functions, for tests of what the client makes of it. */

#include "export.h"
#include "made_recording.h"

/* Frees the profile. */
static inline void assert_folded_by(struct profile *profile, enum export_root root,
                                    const char *expected)
{
    const struct export_options options = {.root = root};
    const struct export_format *format = export_format_find("folded");
    EXPECT_PRINTED(expected, assert_int_equal(format->print(file, profile, &options), 0));
    (void)profile_free(profile);
}

static inline void assert_profile_folded(struct profile *profile, const char *expected)
{
    assert_folded_by(profile, EXPORT_ROOT_COMMAND, expected);
}

/* Loads and frees the recording. */
static inline void assert_folded(struct recording *recording, const char *expected)
{
    assert_profile_folded(load_recording(recording), expected);
}

/* A process "app" with /bin/app at 0x10000, its own addresses from 0x1000 on, and three functions.
 */
#define APP                                                                                        \
    "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x10000 0x1000 0x1000;"                  \
    "symbol ab /bin/app 0x1000 main; symbol ab /bin/app 0x1010 work;"                              \
    "symbol ab /bin/app 0x1020 leaf;"

static inline struct recording *app_recording(void)
{
    return recording_of(APP);
}

static inline void add_kernel(struct recording *recording)
{
    add_module(recording, 0, 1, "[kernel]", 0);
    add_mmap(recording, 0, 0, 1, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63);
    /* A double has 53 bits: as numbers these two would be one. */
    add_data(recording, FXT_STRING_SYMBOLS,
             "{\"build_id\":\"\",\"module\":\"[kernel]\",\"start\":\"0xffffffff81000001\","
             "\"size\":1,\"name\":\"sys_read\"}\n"
             "{\"build_id\":\"\",\"module\":\"[kernel]\",\"start\":\"0xffffffff81000002\","
             "\"size\":1,\"name\":\"copy_to_user\"}\n");
}
