/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the function that waits, by names. The kernel itself goes by a section of its code, of
 * which a recording says nothing. That section has the locks of the kernel as well; these stay,
 * since a lock is what is waited for. A compiler's suffix (".part.0") is no part of a name. Frames
 * of a kernel without names stay.
 *
 * A stack is looked at once, for the times between which no Mmap record changes what it means.
 */
#include "wait_leaf.h"

#include "cleanup.h"
#include "profile.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

/* What leaves the CPU for others, and sleeps for as long as it is told. */
static const char *const scheduler_names[] = {
    "__cond_resched",
    "__cond_resched_lock",
    "__cond_resched_rwlock_read",
    "__cond_resched_rwlock_write",
    "__schedule",
    "__wait_for_common",
    "__wait_on_bit",
    "__wait_on_bit_lock",
    "_cond_resched",
    "bit_wait",
    "bit_wait_io",
    "bit_wait_io_timeout",
    "bit_wait_timeout",
    "do_nanosleep",
    "do_sched_yield",
    "io_schedule",
    "io_schedule_timeout",
    "out_of_line_wait_on_bit",
    "out_of_line_wait_on_bit_lock",
    "out_of_line_wait_on_bit_timeout",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
    "preempt_schedule_notrace_thunk",
    "preempt_schedule_thunk",
    "rt_mutex_schedule",
    "schedule",
    "schedule_hrtimeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "schedule_rtlock",
    "schedule_timeout",
    "schedule_timeout_idle",
    "schedule_timeout_interruptible",
    "schedule_timeout_killable",
    "schedule_timeout_uninterruptible",
    NULL,
};

/* How the kernel is entered and left: interrupts, system calls, faults, and a new thread. A name
 * that ends with a star is the beginning of many. */
static const char *const entry_names[] = {
    "__do_fast_syscall_32",
    "asm_common_interrupt",
    "asm_exc_*",
    "asm_int80_emulation",
    "asm_spurious_interrupt",
    "asm_sysvec_*",
    "common_interrupt",
    "do_fast_syscall_32",
    "do_int80_emulation",
    "do_syscall_64",
    "entry_INT80_compat",
    "entry_SYSCALL_*",
    "entry_SYSENTER_*",
    "exc_*",
    "exit_to_user_mode_*",
    "ia32_sys_call",
    "irqentry_*",
    "raw_irqentry_exit_cond_resched",
    "ret_from_fork",
    "ret_from_fork_asm",
    "spurious_interrupt",
    "syscall_exit_*",
    "sysvec_*",
    "x64_sys_call",
    NULL,
};

/* What a function of the kernel is to a thread that leaves its CPU. */
enum leaf_kind {
    LEAF_WAITS,
    LEAF_SCHEDULES,
    LEAF_ENTERS,
};

/* What a kernel stack becomes. */
struct found_leaf {
    struct mapping_validity validity; /* at first no time is in it */
    uint32_t segment;                 /* whose kernel it is */
    uint32_t stack;
    uint32_t lone_stack; /* where there is no user stack */
};

struct leaf_finder {
    struct profile *profile;
    bool is_preempted;        /* else threads were blocked */
    struct found_leaf *found; /* owned; by item of the profile's `stacks` */
};

static void leaf_finder_done(struct leaf_finder *finder)
{
    free(finder->found);
}

static bool is_name(const char *listed, const char *name, size_t name_bytes)
{
    const size_t bytes = strcspn(listed, "*");
    return listed[bytes] == '*' ? strncmp(listed, name, bytes) == 0
                                : bytes == name_bytes && memcmp(listed, name, bytes) == 0;
}

static bool is_listed(const char *const *names, const char *name)
{
    const size_t bytes = strcspn(name, ".");
    while (*names != NULL && !is_name(*names, name, bytes)) {
        names++;
    }
    return *names != NULL;
}

static enum leaf_kind kind_of(const char *name)
{
    return is_listed(scheduler_names, name) ? LEAF_SCHEDULES
           : is_listed(entry_names, name)   ? LEAF_ENTERS
                                            : LEAF_WAITS;
}

/* The kind of the function that the recording names at an address of the kernel. */
static enum leaf_kind find_kind(const struct leaf_finder *finder, struct mapping_process *kernel,
                                uint64_t instruction, uint64_t time_ns,
                                struct mapping_validity *validity)
{
    const struct profile *profile = finder->profile;
    const struct mapping *mapping = mappings_find(kernel, instruction, time_ns, validity);
    const struct symbol_entry *function =
        mapping == NULL ? NULL
                        : symbols_find(&profile->tables->symbols, mapping->symbols,
                                       instruction - mapping->start + mapping->vaddr);
    const char *name = function == NULL ? NULL : profile_text(profile, function->name);
    return name == NULL ? LEAF_WAITS : kind_of(name);
}

/* How many of a stack's innermost functions are the scheduler's, and how many are these or ways
 * into the kernel. */
struct left_out {
    size_t schedule_count;
    size_t count;
};

static void leave_out(struct left_out *left_out, enum leaf_kind kind)
{
    left_out->schedule_count +=
        kind == LEAF_SCHEDULES && left_out->schedule_count == left_out->count;
    left_out->count++;
}

/* Whether a thread that has only such functions in the kernel was in the program: it had to give up
 * its CPU on the way there. One that is blocked in the scheduler alone is of no known place. */
static bool is_in_program(const struct left_out *left_out, bool is_preempted)
{
    return is_preempted || left_out->count > left_out->schedule_count;
}

/* Makes the stack that is left without the innermost `first` functions of one. */
static int cut_stack(struct profile *profile, uint32_t whole, size_t first, uint32_t *ret_stack)
{
    size_t bytes = 0;
    const uint64_t *stack = intern_bytes(&profile->stacks, whole, &bytes);
    const size_t count = bytes / sizeof *stack;
    if (first == 0) {
        *ret_stack = whole;
        return 0;
    }
    cleanup_(freep) uint64_t *left = malloc((count - first + 1) * sizeof *left);
    if (left == NULL) {
        return -ENOMEM;
    }
    memcpy(left, stack + first, (count - first) * sizeof *left);
    left[0] -= first < count && left[0] > 0;
    return intern_add(&profile->stacks, left, (count - first) * sizeof *left, ret_stack);
}

/* Makes the stacks that are left of a sample's kernel stack: the empty one for the program alone.
 */
static int find_leaf(const struct leaf_finder *finder, const struct profile_sample *sample,
                     struct found_leaf *ret)
{
    struct profile *profile = finder->profile;
    size_t bytes = 0;
    const uint64_t *stack = intern_bytes(&profile->stacks, sample->kernel_stack, &bytes);
    const size_t count = bytes / sizeof *stack;
    struct left_out left_out = {0};
    enum leaf_kind kind = LEAF_SCHEDULES;
    *ret = (struct found_leaf){
        .validity = {0, UINT64_MAX},
        .segment = profile_task(profile, sample->task)->segment,
    };
    struct mapping_process *kernel =
        mappings_process(&profile->tables->mappings, ret->segment, PROFILE_PID_OUTSIDE);
    while (left_out.count < count && kind != LEAF_WAITS) {
        size_t i = left_out.count;
        kind = find_kind(finder, kernel, stack[i] - (i > 0 && stack[i] > 0), sample->time_ns,
                         &ret->validity);
        if (kind != LEAF_WAITS) {
            leave_out(&left_out, kind);
        }
    }
    size_t first = left_out.count;
    size_t lone_first = left_out.count;
    if (first == count) {
        first = is_in_program(&left_out, finder->is_preempted) ? count : 0;
        lone_first = left_out.schedule_count < count ? left_out.schedule_count : 0;
    }
    int r = cut_stack(profile, sample->kernel_stack, first, &ret->stack);
    return r < 0 ? r : cut_stack(profile, sample->kernel_stack, lone_first, &ret->lone_stack);
}

static int give_leaf(const struct leaf_finder *finder, struct profile_sample *sample)
{
    struct found_leaf *found = &finder->found[sample->kernel_stack];
    bool is_known = found->segment == profile_task(finder->profile, sample->task)->segment &&
                    found->validity.from_ns <= sample->time_ns &&
                    sample->time_ns < found->validity.until_ns;
    int r = is_known ? 0 : find_leaf(finder, sample, found);
    if (r == 0) {
        sample->kernel_stack = sample->user_stack == 0 ? found->lone_stack : found->stack;
        sample->in_kernel = sample->in_kernel && sample->kernel_stack != 0;
    }
    return r;
}

static bool is_preemption(const struct profile_event *event)
{
    return strcmp(event->name, PROFILE_EVENT_PREEMPTED) == 0;
}

size_t wait_leaf_frames(const struct profile *profile, const struct profile_event *event,
                        const uint32_t *frames, size_t count)
{
    struct left_out left_out = {0};
    enum leaf_kind kind = LEAF_SCHEDULES;
    while (left_out.count + 1 < count && kind != LEAF_WAITS) {
        const struct profile_frame *frame = profile_frame(profile, frames[left_out.count]);
        kind = frame->is_kernel == 0 ? LEAF_WAITS : kind_of(profile_text(profile, frame->name));
        if (kind != LEAF_WAITS) {
            leave_out(&left_out, kind);
        }
    }
    bool is_kernel = count > 0 && profile_frame(profile, frames[left_out.count])->is_kernel != 0;
    return is_kernel || is_in_program(&left_out, is_preemption(event)) ? left_out.count : 0;
}

int wait_leaf_find(struct profile *profile)
{
    cleanup_(leaf_finder_done) struct leaf_finder finder = {
        .profile = profile,
        .is_preempted = is_preemption(&profile->event),
    };
    int r = 0;
    if (!profile->event.is_of_switches) {
        return 0;
    }
    finder.found = calloc(profile->stacks.item_count, sizeof *finder.found);
    if (finder.found == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        if (profile->samples[i].kernel_stack != 0) {
            r = give_leaf(&finder, &profile->samples[i]);
        }
    }
    return r;
}
