/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events of devices, by files as those in which a kernel describes them: tests/data/event_source
 * has an Intel, an AMD and an arm64 processor's, written by hand after their formats, and not
 * copied from such machines. The words are those of the manuals' encodings, by hand.
 */
#include "perf_pmu.h"
#include "unit_test.h"

#include <errno.h>

#define ROOT TEST_DATA_DIR "/event_source/"

TEST(makes_the_words_that_the_formats_say)
{
    static const struct {
        const char *processor;
        const char *name;
        int64_t type;
        uint64_t config;
        uint64_t config1;
    } rows[] = {
        {"intel", "cpu/event=0x3c/", 4, 0x3c, 0},
        {"intel", "cpu/event=0x3c,umask=0x1,edge,cmask=2/", 4, 0x204013c, 0},
        {"intel", "cpu/event=0xc2,umask=2,inv=1,any,pc=1/", 4, 0xa802c2, 0},
        {"intel", "cpu/cpu-cycles/", 4, 0x3c, 0},
        {"intel", "cpu/mem-loads/", 4, 0x1cd, 3},
        {"intel", "cpu/mem-loads,ldlat=30/", 4, 0x1cd, 30},
        {"intel", "cpu/cache-misses,edge/:k", 4, 0x4412e, 0},
        {"intel", "cpu/event=0xb7,umask=1,offcore_rsp=0xffffffffffffffff/", 4, 0x1b7, UINT64_MAX},
        {"intel", "cpu/config=0x53,config1=7/", 4, 0x53, 7},
        {"intel", "cpu/in_tx,in_tx_cp,event=1/", 4, UINT64_C(0x300000001), 0},
        {"amd", "cpu/event=0x76/", 4, 0x76, 0},
        {"amd", "cpu/event=0xfff,umask=0x41/", 4, UINT64_C(0xf000041ff), 0},
        {"amd", "cpu/branch-misses/", 4, 0xc3, 0},
        {"amd", "ibs_op/cnt_ctl=1/", 9, UINT64_C(1) << 19, 0},
        {"arm64", "armv8_pmuv3_0/event=0x11,long=1/", 8, 0x11, 1},
        {"arm64", "armv8_pmuv3_0/l1d_cache_refill/", 8, 0x3, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char root[512];
        struct event_code code = {.type = EVENT_OF_PMU};
        struct fault fault = {0};
        (void)snprintf(root, sizeof root, ROOT "%s", rows[i].processor);
        if (perf_pmu_find(root, rows[i].name, &code, &fault) != 0) {
            fail_msg("%s: %s", rows[i].name, fault.text);
        }
        assert_int_equal(code.type, rows[i].type);
        if (code.config != rows[i].config || code.config1 != rows[i].config1) {
            fail_msg("%s is %#llx, %#llx", rows[i].name, (unsigned long long)code.config,
                     (unsigned long long)code.config1);
        }
    }
}

TEST(refuses_what_the_device_does_not_have)
{
    static const struct {
        const char *name;
        const char *said;
    } rows[] = {
        {"cpu/evnt=1/", "'evnt' is no term of that device"},
        {"cpu/event=0x100/", "'event' has a value that does not fit"},
        {"cpu/edge=2/", "'edge' has a value that does not fit"},
        {"cpu/event=x/", "'event' has a value that is no number"},
        {"cpu/event=/", "'event' has a value that is no number"},
        {"cpu/../", "'..' is no term of that device"},
        {"cpu/no-such-event/", "'no-such-event' is no term of that device"},
        {"cpu/odd=1/", "'odd' has a format that is not known here"},
        {"cpu/wide=1/", "'wide' has a value that does not fit"},
        {"cpu/loop/", "'loop' is no term of that device"},
        {"cpu/a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/", "'a' is no term of that device"},
        {"cpu_core/event=1/", "there is no device 'cpu_core' on this machine"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct event_code code = {.type = EVENT_OF_PMU};
        struct fault fault = {0};
        assert_int_equal(perf_pmu_find(ROOT "intel", rows[i].name, &code, &fault), -EINVAL);
        assert_string_equal(fault.member, "events");
        assert_contains(fault.text, rows[i].said);
    }
}

TEST(lists_the_events_of_processors)
{
    char names[8][PERF_PMU_NAME_BYTES];
    static const char *const intel[] = {"cpu/branch-misses/", "cpu/cache-misses/",
                                        "cpu/cpu-cycles/",    "cpu/instructions/",
                                        "cpu/loop/",          "cpu/mem-loads/"};
    assert_int_equal(perf_pmu_list(ROOT "intel", names, COUNT_OF(names)), COUNT_OF(intel));
    for (size_t i = 0; i < COUNT_OF(intel); i++) {
        assert_string_equal(names[i], intel[i]);
    }
    assert_int_equal(perf_pmu_list(ROOT "intel", names, 2), 2);
    assert_int_equal(perf_pmu_list(ROOT "no such machine", names, COUNT_OF(names)), 0);
}

/* Their terms may be addresses in the memory of the daemon, or in that of the kernel. */
TEST(takes_no_device_but_a_processors)
{
    static const char *const names[] = {
        "uprobe/config1=0x400000/", "kprobe/config=1/",      "tracepoint/config=1/",
        "breakpoint/config=1/",     "software/config=0/",    "msr/tsc/",
        "uncore_imc/event=1/",      "../intel/cpu/event=1/", "power/energy-pkg/",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct event_code code = {.type = EVENT_OF_PMU};
        struct fault fault = {0};
        assert_int_equal(perf_pmu_find(ROOT "intel", names[i], &code, &fault), -EINVAL);
        assert_contains(fault.text, "is no processor's device");
    }
}
