/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_list.h"
#include "perf_plan.h"
#include "unit_test.h"

#include <errno.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct perf_plan_input usual = {
    .period_ns = 250000,
    .max_stack_depth = 127,
    .user_regs_count = 17,
    .sysctl_max_stack = 127,
    .cpu_count = 2,
    .sideband_count = 2,
    .memory_bytes = 16 * GIB,
    .page_bytes = 4096,
};

/* The usual, but for a few members. */
static struct perf_plan_input input_of(uint64_t period_ns, uint32_t copy_bytes, size_t cpu_count,
                                       uint64_t memory_bytes)
{
    struct perf_plan_input input = usual;
    input.period_ns = period_ns;
    input.stack_copy_bytes = copy_bytes;
    input.cpu_count = cpu_count;
    input.sideband_count = cpu_count;
    input.memory_bytes = memory_bytes;
    return input;
}

TEST(reads_lists_of_cpus)
{
    static const struct {
        const char *text;
        size_t count;
        uint32_t cpus[5];
    } cases[] = {
        {"0\n", 1, {0}},
        {"0-1\n", 2, {0, 1}},
        {"0-2,8", 4, {0, 1, 2, 8}},
        {"3,5-5,65534-65535\n", 4, {3, 5, 65534, 65535}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t *cpus = NULL;
        size_t count = 0;
        assert_int_equal(cpu_list_parse(cases[i].text, &cpus, &count), 0);
        assert_int_equal(count, cases[i].count);
        assert_memory_equal(cpus, cases[i].cpus, count * sizeof *cpus);
        free(cpus);
    }
}

TEST(refuses_what_is_no_list_of_cpus)
{
    static const char *const texts[] = {
        "",           "\n",    "0-",    "-1",   "0,",      "0,,1",  "2-1",
        "1,1",        "3,2",   "0-3,3", "0 \n", "0\n\n",   "a",     "0-1-2",
        "4294967296", "65536", "0x1",   "+1",   "0-65536", "2-1,5", "5-2",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        uint32_t *cpus = NULL;
        size_t count = 0;
        if (cpu_list_parse(texts[i], &cpus, &count) != -EBADMSG) {
            fail_msg("'%s' is not refused", texts[i]);
        }
        assert_null(cpus);
    }
}

TEST(sizes_rings_by_rate_depth_and_memory)
{
    static const struct {
        const char *what;
        uint64_t period_ns;
        uint16_t depth;
        uint32_t copy_bytes;
        size_t cpu_count;
        uint64_t memory_bytes;
        uint64_t sample_bytes, sideband_bytes;
    } cases[] = {
        /* 801 samples of (127 + 9) words are 871,488 bytes. */
        {"usual", 250000, 127, 0, 2, 16 * GIB, 1 * MIB, 4 * MIB},
        {"shallow", 250000, 16, 0, 2, 16 * GIB, 512 * KIB, 4 * MIB},
        {"slow", 1000000000, 127, 0, 2, 16 * GIB, 512 * KIB, 4 * MIB},
        {"fastest", 10000, 127, 0, 2, 16 * GIB, 32 * MIB, 4 * MIB},
        {"16 CPUs", 250000, 127, 0, 16, 16 * GIB, 1 * MIB, 4 * MIB},
        {"17 CPUs", 250000, 127, 0, 17, 16 * GIB, 1 * MIB, 1 * MIB},
        /* 5,001 samples for 50 ms are 5,441,088 bytes. */
        {"fastest on many CPUs", 10000, 127, 0, 32, 64 * GIB, 8 * MIB, 1 * MIB},
        {"less time", 250000, 127, 0, 2, 352 * MIB, 512 * KIB, 4 * MIB},
        {"least time", 250000, 127, 0, 2, 320 * MIB, 256 * KIB, 4 * MIB},
        {"small sideband", 250000, 127, 0, 2, 256 * MIB, 1 * MIB, 1 * MIB},
        /* 801 samples of (127 + 9 + 20) words and the copy are 14,123,232 bytes. */
        {"copies", 250000, 127, 16384, 2, 16 * GIB, 16 * MIB, 4 * MIB},
        {"copies in less memory", 250000, 127, 16384, 2, 1 * GIB, 8 * MIB, 4 * MIB},
        /* 201 samples of 50 ms are 3,544,032 bytes. */
        {"copies in least memory", 250000, 127, 16384, 2, 400 * MIB, 4 * MIB, 1 * MIB},
        /* A record ends at 65,528 bytes: 200 of them are 13,105,600. */
        {"largest copies", 1001001, 127, 65000, 2, 16 * GIB, 16 * MIB, 4 * MIB},
        {"chains deeper than the kernel's", 1001001, 510, 65000, 2, 16 * GIB, 16 * MIB, 4 * MIB},
        {"copies on many CPUs", 1001001, 127, 65000, 64, 64 * GIB, 4 * MIB, 1 * MIB},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct perf_plan_input input = input_of(cases[i].period_ns, cases[i].copy_bytes,
                                                cases[i].cpu_count, cases[i].memory_bytes);
        struct perf_plan plan = {0};
        struct fault fault = {0};
        input.max_stack_depth = cases[i].depth;
        if (perf_plan_make(&input, &plan, &fault) != 0) {
            fail_msg("%s: %s", cases[i].what, fault.text);
        }
        if (plan.sample_ring_bytes != cases[i].sample_bytes ||
            plan.sideband_ring_bytes != cases[i].sideband_bytes) {
            fail_msg("%s: %llu KiB, %llu KiB", cases[i].what,
                     (unsigned long long)(plan.sample_ring_bytes / KIB),
                     (unsigned long long)(plan.sideband_ring_bytes / KIB));
        }
        assert_int_equal(plan.total_bytes,
                         input.cpu_count * (cases[i].sample_bytes + cases[i].sideband_bytes +
                                            cases[i].sideband_bytes / 8 + 3 * input.page_bytes));
        assert_int_equal(plan.switch_ring_bytes, cases[i].sideband_bytes / 8);
        assert_true(plan.total_bytes <= input.memory_bytes / 32 && plan.total_bytes <= 512 * MIB);
    }
}

TEST(cpus_that_are_not_sampled_have_sideband_alone)
{
    struct perf_plan_input input = usual;
    struct perf_plan plan = {0};
    struct fault fault = {0};
    input.cpu_count = 1;
    input.sideband_count = 8;
    assert_int_equal(perf_plan_make(&input, &plan, &fault), 0);
    assert_int_equal(plan.total_bytes, plan.sample_ring_bytes + plan.switch_ring_bytes +
                                           2 * input.page_bytes +
                                           8 * (plan.sideband_ring_bytes + input.page_bytes));
}

TEST(refuses_rings_that_take_too_much_with_the_arithmetic)
{
    static const struct {
        uint64_t period_ns;
        uint32_t copy_bytes;
        size_t cpu_count;
        uint64_t memory_bytes;
        const char *member, *text;
    } cases[] = {
        {10000, 0, 128, 1024 * GIB, "frequency_hz",
         "100000 Hz x 1088 bytes x 128 CPUs need 1036 MiB of rings for 50 ms (8192 KiB of "
         "samples, 64 KiB of sideband, 16 KiB of switches each); allowed are 512 MiB (1/32 of the memory, at most 512 "
         "MiB): lower the rate to 38538 Hz"},
        {250000, 32768, 128, 1024 * GIB, "stack_copy_bytes",
         "4000 Hz x 34016 bytes x 128 CPUs need 1044 MiB of rings for 50 ms (8192 KiB of "
         "samples, 128 KiB of sideband, 16 KiB of switches each); allowed are 512 MiB (1/32 of the memory, at most 512 "
         "MiB): lower stack_copy_bytes to 9184 or the rate to 1219 Hz"},
        {10000, 512, 512, 1024 * GIB, "frequency_hz",
         "100000 Hz x 1760 bytes x 512 CPUs need 8270 MiB of rings for 50 ms (16384 KiB of "
         "samples, 128 KiB of sideband, 16 KiB of switches each); allowed are 512 MiB (1/32 of the memory, at most 512 "
         "MiB): lower the rate to 5939 Hz"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct perf_plan_input input = input_of(cases[i].period_ns, cases[i].copy_bytes,
                                                      cases[i].cpu_count, cases[i].memory_bytes);
        struct perf_plan plan = {.total_bytes = 7};
        struct fault fault = {0};
        assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);
        assert_string_equal(fault.member, cases[i].member);
        assert_string_equal(fault.text, cases[i].text);
        assert_int_equal(plan.total_bytes, 7);
    }
}

/* A config without stack_copy_bytes and "unwind"; its rate may be one too. */
static struct perf_plan_input default_input(uint64_t period_ns, bool rate_is_default,
                                            uint32_t copy_bytes, size_t cpu_count,
                                            uint64_t memory_bytes)
{
    struct perf_plan_input input = input_of(period_ns, copy_bytes, cpu_count, memory_bytes);
    input.may_shrink_copy = true;
    input.may_drop_copy = true;
    input.may_shrink_time = rate_is_default;
    return input;
}

#define ROOM "(1/32 of the memory, at most 512 MiB)"

/* What a plan says of a copy that was cut; `storm_kib`: of small rings of sideband, 0: nothing. */
static const char *cut_text(char text[512], uint32_t asked, uint32_t given, size_t cpu_count,
                            unsigned room_mib, unsigned storm_kib)
{
    int used = 0;
    if (given == 0) {
        used = snprintf(text, 512,
                        "is \"fp\": the rings of %zu CPUs have no room for copies of stacks in %u "
                        "MiB " ROOM,
                        cpu_count, room_mib);
    } else {
        used = snprintf(text, 512,
                        "is %u instead of %u, so that the rings of %zu CPUs fit in %u MiB " ROOM,
                        given, asked, cpu_count, room_mib);
    }
    if (storm_kib > 0) {
        (void)snprintf(text + used, 512 - (size_t)used,
                       "; a CPU's records of what processes do have %u KiB, and storms lose some",
                       storm_kib);
    }
    return given == asked ? "" : text;
}

/* 999 Hz with copies of 65,000 bytes and 4000 Hz with 16,384, as session_config has them. */
TEST(runs_with_defaults_on_every_machine)
{
    static const struct {
        size_t cpu_count;
        uint64_t memory_bytes;
        uint32_t copies[2];    /* that fit: at 999 Hz, at 4000 Hz */
        unsigned storm_kib[2]; /* of sideband, where that is little */
    } machines[] = {
        {2, 16 * GIB, {65000, 16384}, {0, 0}},     {1, 512 * MIB, {65000, 16384}, {0, 0}},
        {4, 1 * GIB, {65000, 16384}, {0, 0}},      {8, 1 * GIB, {32768, 8192}, {0, 0}},
        {64, 64 * GIB, {65000, 16384}, {0, 0}},    {100, 64 * GIB, {32768, 8192}, {0, 0}},
        {128, 512 * GIB, {32768, 8192}, {0, 0}},   {256, 64 * GIB, {8192, 2048}, {0, 256}},
        {1024, 1024 * GIB, {1024, 0}, {256, 128}},
    };
    static const uint32_t asked[] = {65000, 16384};
    for (size_t i = 0; i < 2 * COUNT_OF(machines); i++) {
        const size_t cpu_count = machines[i / 2].cpu_count;
        const bool fast = i % 2 == 1;
        const struct perf_plan_input input = default_input(
            fast ? 249753 : 1002001, !fast, asked[fast], cpu_count, machines[i / 2].memory_bytes);
        const unsigned room_mib = machines[i / 2].memory_bytes == 1 * GIB ? 32 : 512;
        struct perf_plan plan = {0};
        struct fault fault = {0};
        char text[512];
        if (perf_plan_make(&input, &plan, &fault) != 0) {
            fail_msg("%zu CPUs: %s", cpu_count, fault.text);
        }
        const uint32_t given = machines[i / 2].copies[fast];
        assert_int_equal(plan.stack_copy_bytes, given);
        assert_true(plan.total_bytes <= input.memory_bytes / 32 && plan.total_bytes <= 512 * MIB);
        assert_int_equal(plan.cut.code != 0, given != asked[fast]);
        assert_string_equal(plan.cut.text, cut_text(text, asked[fast], given, cpu_count, room_mib,
                                                    machines[i / 2].storm_kib[fast]));
    }
}

TEST(keeps_or_refuses_what_is_explicit)
{
    struct perf_plan_input input = default_input(1002001, true, 65000, 256, 64 * GIB);
    struct perf_plan plan = {0};
    struct fault fault = {0};
    input.may_shrink_copy = false;
    assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);
    assert_string_equal(fault.member, "stack_copy_bytes");
    /* What the advice says fits, and is kept as it is. */
    const char *advice = strstr(fault.text, "lower stack_copy_bytes to ");
    assert_non_null(advice);
    input.stack_copy_bytes =
        (uint32_t)strtoul(advice + strlen("lower stack_copy_bytes to "), NULL, 10);
    assert_int_equal(perf_plan_make(&input, &plan, &fault), 0);
    assert_int_equal(plan.stack_copy_bytes, input.stack_copy_bytes);

    /* "unwind" is explicit: copies shrink, and are never dropped. */
    input = default_input(249753, false, 16384, 1024, 1024 * GIB);
    input.may_drop_copy = false;
    assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);

    /* An explicit rate keeps its 50 ms, a default one does not. */
    input = default_input(10000, false, 0, 128, 1024 * GIB);
    assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);
    assert_string_equal(fault.member, "frequency_hz");
    input.may_shrink_time = true;
    assert_int_equal(perf_plan_make(&input, &plan, &fault), 0);
}

static bool fits(uint64_t rate_hz, uint32_t copy_bytes, size_t cpu_count)
{
    const struct perf_plan_input input =
        input_of((1000000000 + rate_hz / 2) / rate_hz, copy_bytes, cpu_count, usual.memory_bytes);
    struct perf_plan plan;
    return perf_plan_make(&input, &plan, NULL) == 0;
}

TEST(advises_the_most_that_fits)
{
    static const char copy_advice[] = "lower stack_copy_bytes to ";
    static const char rate_advice[] = " or the rate to ";
    for (size_t cpu_count = 16; cpu_count <= 128; cpu_count *= 2) {
        const struct perf_plan_input input = input_of(100000, 65000, cpu_count, usual.memory_bytes);
        struct perf_plan plan;
        struct fault fault = {0};
        assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);
        const char *advice = strstr(fault.text, "lower ");
        assert_non_null(advice);
        char *end = NULL;
        uint32_t copy_bytes = (uint32_t)strtoul(advice + strlen(copy_advice), &end, 10);
        assert_memory_equal(advice, copy_advice, strlen(copy_advice));
        assert_memory_equal(end, rate_advice, strlen(rate_advice));
        uint64_t rate_hz = strtoul(end + strlen(rate_advice), &end, 10);
        assert_string_equal(end, " Hz");
        assert_true(fits(10000, copy_bytes, cpu_count));
        assert_false(fits(10000, copy_bytes + 8, cpu_count));
        assert_true(fits(rate_hz, 65000, cpu_count));
        assert_false(fits(rate_hz + rate_hz / 50 + 1, 65000, cpu_count));
    }
}

TEST(shares_one_budget_of_frames)
{
    static const struct {
        uint16_t depth;
        bool kernel_stacks;
        uint32_t copy_bytes;
        uint32_t sysctl;
        uint16_t sample_max_stack;
    } cases[] = {
        {20, false, 0, 127, 20},     {20, true, 0, 127, 84},    {100, true, 0, 127, 127},
        {127, false, 0, 127, 127},   {510, true, 0, 1000, 574}, {510, false, 8192, 127, 127},
        {510, true, 8192, 127, 127}, {20, true, 8192, 127, 84}, {510, true, 8192, 1000, 574},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct perf_plan_input input = usual;
        struct perf_plan plan;
        input.max_stack_depth = cases[i].depth;
        input.kernel_stacks = cases[i].kernel_stacks;
        input.stack_copy_bytes = cases[i].copy_bytes;
        input.sysctl_max_stack = cases[i].sysctl;
        assert_int_equal(perf_plan_make(&input, &plan, NULL), 0);
        assert_int_equal(plan.sample_max_stack, cases[i].sample_max_stack);
    }
}

TEST(refuses_depths_above_the_sysctl_and_names_it)
{
    struct perf_plan_input input = usual;
    struct perf_plan plan;
    struct fault fault = {0};
    input.max_stack_depth = 128;
    assert_int_equal(perf_plan_make(&input, &plan, &fault), -EINVAL);
    assert_string_equal(fault.member, "max_stack_depth");
    assert_contains(fault.text, "kernel.perf_event_max_stack");
    assert_contains(fault.text, "1 to 127");
}
