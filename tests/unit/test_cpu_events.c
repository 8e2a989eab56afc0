/* SPDX-License-Identifier: Apache-2.0 */

/* Which of the kernel's uevents are of CPUs. */
#include "cpu_events.h"
#include "unit_test.h"

TEST(tells_those_of_cpus_from_others)
{
    static const struct {
        const char *bytes;
        size_t size_bytes;
        bool concerned;
    } cases[] = {
#define EVENT(text, concerned) {text, sizeof(text) - 1, concerned}
        EVENT("online@/devices/system/cpu/cpu1\0ACTION=online\0SUBSYSTEM=cpu", true),
        EVENT("offline@/devices/system/cpu/cpu127\0ACTION=offline", true),
        EVENT("add@/devices/system/cpu/cpu3", true),
        EVENT("add@/devices/virtual/cpuid/cpu1\0ACTION=add\0SUBSYSTEM=cpuid", false),
        EVENT("change@/devices/virtual/block/loop0\0X=@/devices/system/cpu/cpu1", false),
        EVENT("libudev\0\xfe\xed\xca\xfe", false),
        EVENT("online@/devices/system/cp", false),
        EVENT("\0", false),
        {"", 0, false},
#undef EVENT
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(cpu_events_concern(cases[i].bytes, cases[i].size_bytes),
                         cases[i].concerned);
    }
}
