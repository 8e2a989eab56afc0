/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names of events against the kernel's own header, and what an administrator's limits make of
 * them. Files of tests/data/session_config have what is refused.
 */
#include "event_names.h"
#include "session_config.h"
#include "unit_test.h"

#include <errno.h>
#include <linux/perf_event.h>

#define CACHE(cache, operation, result)                                                            \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 |                       \
     PERF_COUNT_HW_CACHE_RESULT_##result << 16)

TEST(has_the_numbers_of_the_kernel)
{
    static const struct {
        const char *name;
        int64_t type;
        uint64_t config;
        const char *unit;
    } rows[] = {
        {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "ns"},
        {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "ns"},
        {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "faults"},
        {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "faults"},
        {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, "faults"},
        {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "faults"},
        {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "switches"},
        {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "switches"},
        {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "migrations"},
        {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, "faults"},
        {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, "faults"},
        {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
        {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
        {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "references"},
        {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "misses"},
        {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
        {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "misses"},
        {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, "cycles"},
        {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, "cycles"},
        {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
         "cycles"},
        {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
         "cycles"},
        {"L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), "events"},
        {"L1-icache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS), "events"},
        {"LLC-store-misses", PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, MISS), "events"},
        {"dTLB-stores", PERF_TYPE_HW_CACHE, CACHE(DTLB, WRITE, ACCESS), "events"},
        {"iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), "events"},
        {"branch-loads", PERF_TYPE_HW_CACHE, CACHE(BPU, READ, ACCESS), "events"},
        {"node-prefetches", PERF_TYPE_HW_CACHE, CACHE(NODE, PREFETCH, ACCESS), "events"},
        {"LLC-prefetch-misses", PERF_TYPE_HW_CACHE, CACHE(LL, PREFETCH, MISS), "events"},
        {"r01C2", PERF_TYPE_RAW, 0x1c2, "events"},
        {"rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX, "events"},
        {"cpu/event=0x3c,umask=0x0/", EVENT_OF_PMU, 0, "events"},
        {"p/t/", EVENT_OF_PMU, 0, "events"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct event_code code;
        assert_int_equal(event_names_find(rows[i].name, "e", &code, NULL), 0);
        assert_int_equal(code.type, rows[i].type);
        assert_int_equal(code.config, rows[i].config);
        assert_string_equal(event_names_unit(&code), rows[i].unit);
    }
}

TEST(takes_modifiers_as_perf_does)
{
    static const struct {
        const char *name;
        bool no_user;
        bool no_kernel;
        uint8_t precise;
    } rows[] = {
        {"cycles", false, false, 0},    {"cycles:u", false, true, 0},
        {"cycles:k", true, false, 0},   {"cycles:uk", false, false, 0},
        {"cycles:pp", false, false, 2}, {"cpu/event=1/:ukppp", false, false, 3},
        {"r1:kp", true, false, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct event_code code;
        assert_int_equal(event_names_find(rows[i].name, "e", &code, NULL), 0);
        assert_int_equal(code.exclude_user, rows[i].no_user);
        assert_int_equal(code.exclude_kernel, rows[i].no_kernel);
        assert_int_equal(code.precise, rows[i].precise);
    }
}

TEST(refuses_what_is_no_event)
{
    static const char *const names[] = {
        "",
        "LLC",
        "LLC-load",
        "LLC-loads-misses",
        "r",
        "r123456789abcdef01",
        "rg",
        "cpu//",
        "/event=1/",
        "cpu/event=1",
        "c.u/e/",
        "cpu/a b/",
        "cpu/a/b/",
        "tracepoint",
        "kmem:kmalloc",
        "cycles:",
        "cycles:p:u",
        "cycles:pppp",
        "Cycles",
        "page-faults ",
        "dummy",
        "bpf-output",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct event_code code;
        struct fault fault = {0};
        if (event_names_find(names[i], "events[0].event", &code, &fault) != -EINVAL) {
            fail_msg("'%s' is taken", names[i]);
        }
        assert_string_equal(fault.member, "events[0].event");
    }
}

TEST(every_name_of_the_list_is_found)
{
    char name[EVENT_NAME_BYTES];
    struct event_code listed;
    size_t count = 0;
    uint64_t cache_configs = 0;
    for (; event_names_at(count, name, &listed); count++) {
        struct event_code found;
        assert_int_equal(event_names_find(name, "e", &found, NULL), 0);
        assert_int_equal(found.type, listed.type);
        assert_int_equal(found.config, listed.config);
        cache_configs += listed.type == EVENT_CACHE ? listed.config : 0;
    }
    /* Ten of hardware, nine of the kernel, and of caches three times four (L1 data, LLC, data TLB,
     * node: load, store, prefetch), L1 code's load and prefetch, and a load of two, which hit or
     * miss: the sum of (cache | operation << 8 | result << 16) over all. */
    assert_int_equal(count, 19 + 2 * (4 * 3 + 2 + 2));
    assert_int_equal(cache_configs, 2 * (3 * (0 + 2 + 3 + 6) + 2 * 1 + 4 + 5) +
                                        2 * 256 * (4 * (0 + 1 + 2) + 2) + 65536 * 16);
}

TEST(holds_to_the_limits_of_the_administrator)
{
    static const struct {
        unsigned allowed;
        bool is_default;
        uint32_t rate_hz;
        const char *event;
        const char *said; /* NULL: taken */
    } rows[] = {
        {1U << EVENT_KIND_SOFTWARE, true, 0, "{\"event\":\"page-faults\",\"period\":1}", NULL},
        {1U << EVENT_KIND_SOFTWARE, true, 0, "{\"event\":\"cpu-clock\"}", NULL},
        {0, false, 0, "{\"event\":\"cpu-clock\"}", NULL},
        {1U << EVENT_KIND_SOFTWARE, true, 0, "{\"event\":\"LLC-loads\"}",
         "has 'LLC-loads', a hardware event, which users other than root may not have, unless the "
         "administrator says so (allowed_events in F)"},
        {1U << EVENT_KIND_SOFTWARE, true, 0, "{\"event\":\"cpu/event=1/\"}",
         "has 'cpu/event=1/', a raw event, which users other than root may not have, unless the "
         "administrator says so (allowed_events in F)"},
        {1U << EVENT_KIND_HARDWARE, false, 0, "{\"event\":\"cs\"}",
         "has 'cs', a software event, which the administrator does not allow (allowed_events in F)"},
        {1U << EVENT_KIND_HARDWARE, false, 0, "{\"event\":\"r1\"}",
         "has 'r1', a raw event, which the administrator does not allow (allowed_events in F)"},
        {1U << EVENT_KIND_SOFTWARE, true, 99, "{\"event\":\"cs\",\"frequency_hz\":99}", NULL},
        {1U << EVENT_KIND_SOFTWARE, true, 99, "{\"event\":\"cs\",\"frequency_hz\":100}",
         "has 'cs' at 100 a second, above the limit; at most 99 is allowed (max_event_rate_hz in "
         "F)"},
        {1U << EVENT_KIND_SOFTWARE, true, 10000, "{\"event\":\"task-clock\",\"period\":100000}",
         NULL},
        {1U << EVENT_KIND_SOFTWARE, true, 10000, "{\"event\":\"task-clock:u\",\"period\":99999}",
         "has 'task-clock:u' with a period of 99999 ns; at least 100000 is allowed "
         "(max_event_rate_hz in F)"},
        {1U << EVENT_KIND_SOFTWARE, true, 0, "{\"event\":\"task-clock\",\"period\":9999}",
         "has 'task-clock' with a period of 9999 ns; at least 10000 is allowed"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct session_limits limits = session_no_limits;
        struct session_config config;
        struct fault fault = {0};
        char text[128];
        (void)snprintf(text, sizeof text, "{\"events\":[%s]}", rows[i].event);
        limits.path = "F";
        limits.allowed_events = rows[i].allowed;
        limits.allowed_events_is_default = rows[i].is_default;
        limits.max_event_rate_hz = rows[i].rate_hz;
        int r = session_config_parse_within(text, strlen(text), false, &limits, &config, &fault);
        assert_int_equal(r, rows[i].said == NULL ? 0 : -EINVAL);
        assert_string_equal(fault.text, rows[i].said == NULL ? "" : rows[i].said);
    }
}

/* The clock's own element is held to the clock's limit, and is no default that gives way. */
TEST(holds_the_clocks_element_to_the_clocks_limit)
{
    struct session_limits limits = session_no_limits;
    struct session_config config;
    struct fault fault = {0};
    static const char text[] = "{\"events\":[{\"event\":\"cpu-clock\",\"frequency_hz\":501}]}";
    limits.max_frequency_hz = 500;
    assert_int_equal(
        session_config_parse_within(text, strlen(text), false, &limits, &config, &fault), -EINVAL);
    assert_string_equal(fault.member, "frequency_hz");
    assert_int_equal(session_config_parse(text, strlen(text), false, &config, NULL), 0);
    assert_int_equal(config.frequency_hz, 501);
    assert_false(config.rate_is_default);
}
