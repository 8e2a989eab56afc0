/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which of the kernel's functions are left out of the stacks of waits, and that none is of other
 * samples.
 */
#include "app_recording.h"
#include "places.h"

#define SESSION                                                                                    \
    "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\",\"unit\":\"ns\",\"period\":1000},"    \
    "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1},"                                        \
    "{\"event\":\"preempted\",\"unit\":\"ns\",\"period\":1},"                                      \
    "{\"event\":\"cs\",\"unit\":\"switches\",\"period\":1}]}\n"

/* The kernel's functions, 16 bytes each. */
#define KERNEL             UINT64_C(0xffffffff81000000)
#define AT(function, byte) (KERNEL + 16 * (uint64_t)(function) + (byte))
enum {
    SCHEDULE,
    DO_NANOSLEEP,
    HRTIMER_NANOSLEEP,
    TIMEOUT_PART,
    SCHEDULE_WORK,
    EXIT_LOOP,
    INTERRUPT,
    NEW_THREAD,
    IRQ_WORK,
    ENTRY,
    FUNCTIONS,
};

static const char *const function_names[FUNCTIONS] = {
    "schedule",
    "do_nanosleep",
    "hrtimer_nanosleep",
    "schedule_timeout.part.0",
    "schedule_work",
    "exit_to_user_mode_loop",
    "asm_sysvec_apic_timer_interrupt",
    "ret_from_fork",
    "asm_sysvec_irq_work",
    "entry_SYSCALL_64_after_hwframe",
};

static struct recording *recording_with_kernel(void)
{
    struct recording *recording = app_recording();
    add_module(recording, 0, 1, "[kernel]", 0);
    add_mmap(recording, 0, 0, 1, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        char start[32];
        (void)snprintf(start, sizeof start, "0x%llx", (unsigned long long)AT(i, 0));
        add_symbol(recording, "", "[kernel]", start, function_names[i], 16);
    }
    add_data(recording, FXT_STRING_SESSION, SESSION);
    return recording;
}

#define HAS_USER 0x10020 /* the leaf of a stack of two; 0: the sample has no user stack */

/* A sample of each event, of process 7. */
static void add_waits(struct recording *recording, uint64_t user, const uint64_t *kernel,
                      size_t count)
{
    const uint64_t stack[] = {user, 0x10008};
    for (uint64_t event = 0; event < 4; event++) {
        struct fxt_sample sample = user_sample(10, 7, user == 0 ? 0 : COMPLETE, stack, 2);
        sample.fields &= user == 0 ? ~(uint64_t)FXT_SAMPLE_USER_STACK : UINT64_MAX;
        sample.fields |= FXT_SAMPLE_KERNEL_STACK | FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
        sample.event = event;
        sample.weight = 1;
        sample.kernel_stack = kernel;
        sample.kernel_count = count;
        fxt_write_sample(&recording->writer, &sample);
    }
}

static struct profile *load_event(const struct recording *recording, const char *event)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    assert_true(fxt_writer_ok(&recording->writer));
    assert_int_equal(profile_load_memory((const uint8_t *)recording->memory,
                                         recording->writer.used_bytes, event, &profile, &fault),
                     0);
    return profile;
}

/* Of a switch they are those of a thread that is blocked. Frees the recording. */
static void assert_stacks(struct recording *recording, const char *clock, const char *off_cpu,
                          const char *preempted)
{
    assert_profile_folded(load_event(recording, "cpu-clock"), clock);
    assert_profile_folded(load_event(recording, "off-cpu"), off_cpu);
    assert_profile_folded(load_event(recording, "preempted"), preempted);
    assert_profile_folded(load_event(recording, "context-switches"),
                          strstr(off_cpu, "[no stack]") == NULL ? off_cpu : clock);
    free(recording);
}

TEST(the_innermost_function_of_a_wait_is_the_one_that_calls_the_scheduler)
{
    struct recording *recording = recording_with_kernel();
    /* A call that ends a function returns to the first byte of the next one. */
    add_waits(
        recording, HAS_USER,
        ADDRESSES(AT(SCHEDULE, 3), AT(DO_NANOSLEEP, 4), AT(TIMEOUT_PART, 0), AT(SCHEDULE, 5)));
    assert_stacks(recording,
                  "app;main;leaf;schedule_[k];hrtimer_nanosleep_[k];do_nanosleep_[k];"
                  "schedule_[k] 1\n",
                  "app;main;leaf;schedule_[k];hrtimer_nanosleep_[k] 1\n",
                  "app;main;leaf;schedule_[k];hrtimer_nanosleep_[k] 1\n");
}

TEST(compares_whole_names_without_what_a_compiler_puts_behind)
{
    struct recording *recording = recording_with_kernel();
    add_waits(recording, HAS_USER,
              ADDRESSES(AT(SCHEDULE, 3), AT(TIMEOUT_PART, 4), AT(SCHEDULE_WORK, 4)));
    assert_stacks(recording,
                  "app;main;leaf;schedule_work_[k];schedule_timeout.part.0_[k];schedule_[k] 1\n",
                  "app;main;leaf;schedule_work_[k] 1\n", "app;main;leaf;schedule_work_[k] 1\n");
}

TEST(what_ran_when_it_was_preempted_lies_behind_the_interrupt)
{
    struct recording *recording = recording_with_kernel();
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(EXIT_LOOP, 4), AT(INTERRUPT, 4)));
    struct profile *profile = load_event(recording, "preempted");
    assert_int_equal(profile->samples[0].kernel_stack, 0);
    assert_false(profile->samples[0].in_kernel);
    (void)profile_free(profile);
    assert_stacks(recording,
                  "app;main;leaf;asm_sysvec_apic_timer_interrupt_[k];exit_to_user_mode_loop_[k];"
                  "schedule_[k] 1\n",
                  "app;main;leaf 1\n", "app;main;leaf 1\n");
}

/* A wait that began before the recording, or where no sample was taken. Its clock's twin was in the
 * kernel. */
TEST(a_wait_whose_beginning_was_not_sampled_has_no_stack)
{
    struct recording *recording = recording_with_kernel();
    add_waits(recording, 0, NULL, 0);
    assert_stacks(recording, "app;[kernel] 1\n", "app;[no stack] 1\n", "app;[no stack] 1\n");
}

/* Whatever the kernel was entered by, it is no function that waits. */
TEST(ways_into_the_kernel_are_left_out)
{
    struct recording *recording = recording_with_kernel();
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(IRQ_WORK, 4)));
    assert_stacks(recording, "app;main;leaf;asm_sysvec_irq_work_[k];schedule_[k] 1\n",
                  "app;main;leaf 1\n", "app;main;leaf 1\n");
    recording = recording_with_kernel();
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(EXIT_LOOP, 4), AT(ENTRY, 4)));
    assert_stacks(recording,
                  "app;main;leaf;entry_SYSCALL_64_after_hwframe_[k];exit_to_user_mode_loop_[k];"
                  "schedule_[k] 1\n",
                  "app;main;leaf 1\n", "app;main;leaf 1\n");
    recording = recording_with_kernel();
    add_waits(recording, HAS_USER,
              ADDRESSES(AT(SCHEDULE, 3), AT(HRTIMER_NANOSLEEP, 4), AT(ENTRY, 4)));
    assert_stacks(recording,
                  "app;main;leaf;entry_SYSCALL_64_after_hwframe_[k];hrtimer_nanosleep_[k];"
                  "schedule_[k] 1\n",
                  "app;main;leaf;entry_SYSCALL_64_after_hwframe_[k];hrtimer_nanosleep_[k] 1\n",
                  "app;main;leaf;entry_SYSCALL_64_after_hwframe_[k];hrtimer_nanosleep_[k] 1\n");
}

TEST(a_stack_is_never_left_out_whole)
{
    struct recording *recording = recording_with_kernel();
    add_waits(recording, 0, ADDRESSES(AT(SCHEDULE, 3), AT(DO_NANOSLEEP, 4)));
    assert_stacks(recording, "app;do_nanosleep_[k];schedule_[k] 1\n",
                  "app;do_nanosleep_[k];schedule_[k] 1\n", "app;do_nanosleep_[k];schedule_[k] 1\n");
    recording = recording_with_kernel();
    add_waits(recording, 0, ADDRESSES(AT(SCHEDULE, 3), AT(NEW_THREAD, 4)));
    assert_stacks(recording, "app;ret_from_fork_[k];schedule_[k] 1\n", "app;ret_from_fork_[k] 1\n",
                  "app;ret_from_fork_[k] 1\n");
    recording = recording_with_kernel();
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3)));
    assert_stacks(recording, "app;main;leaf;schedule_[k] 1\n", "app;main;leaf;schedule_[k] 1\n",
                  "app;main;leaf 1\n");
}

/* Without names, and where an address is of another kernel since. */
TEST(leaves_out_only_what_the_recording_names)
{
    struct recording *recording = app_recording();
    add_module(recording, 0, 1, "[kernel]", 0);
    add_mmap(recording, 0, 0, 1, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63);
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(DO_NANOSLEEP, 4)));
    assert_stacks(recording, "app;main;leaf;[kernel]_[k] 1\n", "app;main;leaf;[kernel]_[k] 1\n",
                  "app;main;leaf;[kernel]_[k] 1\n");
    recording = recording_with_kernel();
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(SCHEDULE_WORK, 4)));
    add_lines(recording, "segment 2;" APP);
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_waits(recording, HAS_USER, ADDRESSES(AT(SCHEDULE, 3), AT(SCHEDULE_WORK, 4)));
    assert_stacks(
        recording,
        "app;main;leaf;[unknown]_[k];[unknown]_[k] 1\n"
        "app;main;leaf;schedule_work_[k];schedule_[k] 1\n",
        "app;main;leaf;[unknown]_[k];[unknown]_[k] 1\napp;main;leaf;schedule_work_[k] 1\n",
        "app;main;leaf;[unknown]_[k];[unknown]_[k] 1\napp;main;leaf;schedule_work_[k] 1\n");
}

/* An export with addresses has as many of them as frames, and the innermost is one of the function.
 */
TEST(addresses_go_with_the_frames)
{
    struct recording *recording = recording_with_kernel();
    struct stack_place place;
    struct place_walk walk;
    const uint64_t addresses[] = {AT(HRTIMER_NANOSLEEP, 15), AT(SCHEDULE, 5), HAS_USER, 0x10008};
    add_waits(
        recording, HAS_USER,
        ADDRESSES(AT(SCHEDULE, 3), AT(DO_NANOSLEEP, 4), AT(TIMEOUT_PART, 0), AT(SCHEDULE, 5)));
    struct profile *profile = load_event(recording, "off-cpu");
    place_walk_begin(&walk, profile, &profile->samples[0]);
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        assert_true(place_walk_next(&walk, &place));
        assert_int_equal(place.address, addresses[i]);
        assert_int_equal(place.is_kernel, i < 2);
    }
    assert_false(place_walk_next(&walk, &place));
    (void)profile_free(profile);
    free(recording);
}

TEST(a_wait_whose_stack_is_told_later_is_one_too)
{
    struct recording *recording = recording_with_kernel();
    const uint64_t kernel[] = {AT(SCHEDULE, 3), AT(HRTIMER_NANOSLEEP, 4)};
    struct fxt_sample part = partial(10, 1);
    struct fxt_sample rest = completion(1, ADDRESSES(0x10020, 0x10008));
    part.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
    part.event = 1;
    part.weight = 1;
    rest.fields |= FXT_SAMPLE_KERNEL_STACK;
    rest.kernel_stack = kernel;
    rest.kernel_count = COUNT_OF(kernel);
    fxt_write_sample(&recording->writer, &part);
    fxt_write_sample(&recording->writer, &rest);
    assert_profile_folded(load_event(recording, "off-cpu"),
                          "app;main;leaf;hrtimer_nanosleep_[k] 1\n");
    free(recording);
}
