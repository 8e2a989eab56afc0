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

/* What a thread is in that has to give up its CPU, besides its own work: the ends of interrupts,
 * system calls and faults. */
static const char *const exit_names[] = {
    "asm_common_interrupt",
    "asm_exc_page_fault",
    "asm_sysvec_apic_timer_interrupt",
    "asm_sysvec_call_function",
    "asm_sysvec_call_function_single",
    "asm_sysvec_hyperv_stimer0",
    "asm_sysvec_kvm_asyncpf_interrupt",
    "asm_sysvec_reschedule_ipi",
    "asm_sysvec_xen_hvm_callback",
    "common_interrupt",
    "do_syscall_64",
    "entry_SYSCALL_64_after_hwframe",
    "exc_page_fault",
    "exit_to_user_mode_loop",
    "exit_to_user_mode_prepare",
    "irqentry_exit",
    "irqentry_exit_cond_resched",
    "irqentry_exit_to_user_mode",
    "raw_irqentry_exit_cond_resched",
    "ret_from_fork",
    "ret_from_fork_asm",
    "syscall_exit_to_user_mode",
    "sysvec_apic_timer_interrupt",
    "sysvec_call_function",
    "sysvec_call_function_single",
    "sysvec_reschedule_ipi",
    NULL,
};

/* What a kernel stack becomes. */
struct found_leaf {
    struct mapping_validity validity; /* at first no time is in it */
    uint32_t segment;                 /* whose kernel it is */
    uint32_t stack;
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

static bool is_listed(const char *const *names, const char *name)
{
    const size_t bytes = strcspn(name, ".");
    while (*names != NULL && (strncmp(*names, name, bytes) != 0 || (*names)[bytes] != '\0')) {
        names++;
    }
    return *names != NULL;
}

static bool names_no_wait(const char *name, bool is_preempted)
{
    return is_listed(scheduler_names, name) || (is_preempted && is_listed(exit_names, name));
}

/* Whether a function that the recording names at an address of the kernel is left out. */
static bool is_left_out(const struct leaf_finder *finder, struct mapping_process *kernel,
                        uint64_t instruction, uint64_t time_ns, struct mapping_validity *validity)
{
    const struct profile *profile = finder->profile;
    const struct mapping *mapping = mappings_find(kernel, instruction, time_ns, validity);
    const struct symbol_entry *function =
        mapping == NULL ? NULL
                        : symbols_find(&profile->tables->symbols, mapping->symbols,
                                       instruction - mapping->start + mapping->vaddr);
    const char *name = function == NULL ? NULL : profile_text(profile, function->name);
    return name != NULL && names_no_wait(name, finder->is_preempted);
}

/* Makes the stack that is left of a sample's kernel stack: the empty one where nothing is. */
static int find_leaf(const struct leaf_finder *finder, const struct profile_sample *sample,
                     struct found_leaf *ret)
{
    struct profile *profile = finder->profile;
    size_t bytes = 0;
    const uint64_t *stack = intern_bytes(&profile->stacks, sample->kernel_stack, &bytes);
    const size_t count = bytes / sizeof *stack;
    size_t first = 0;
    *ret = (struct found_leaf){
        .validity = {0, UINT64_MAX},
        .segment = profile_task(profile, sample->task)->segment,
        .stack = sample->kernel_stack,
    };
    struct mapping_process *kernel =
        mappings_process(&profile->tables->mappings, ret->segment, PROFILE_PID_OUTSIDE);
    while (first < count &&
           is_left_out(finder, kernel, stack[first] - (first > 0 && stack[first] > 0),
                       sample->time_ns, &ret->validity)) {
        first++;
    }
    if (first == 0 || (first == count && !finder->is_preempted)) {
        return 0;
    }
    cleanup_(freep) uint64_t *left = malloc((count - first + 1) * sizeof *left);
    if (left == NULL) {
        return -ENOMEM;
    }
    memcpy(left, stack + first, (count - first) * sizeof *left);
    left[0] -= first < count && left[0] > 0;
    return intern_add(&profile->stacks, left, (count - first) * sizeof *left, &ret->stack);
}

static int give_leaf(const struct leaf_finder *finder, struct profile_sample *sample)
{
    struct found_leaf *found = &finder->found[sample->kernel_stack];
    bool is_known = found->segment == profile_task(finder->profile, sample->task)->segment &&
                    found->validity.from_ns <= sample->time_ns &&
                    sample->time_ns < found->validity.until_ns;
    int r = is_known ? 0 : find_leaf(finder, sample, found);
    bool is_empty = found->stack == 0;
    if (r == 0 && (!is_empty || sample->user_stack != 0)) {
        sample->kernel_stack = found->stack;
        sample->in_kernel = sample->in_kernel && !is_empty;
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
    const bool is_preempted = is_preemption(event);
    size_t first = 0;
    while (first + 1 < count) {
        const struct profile_frame *frame = profile_frame(profile, frames[first]);
        if (frame->is_kernel == 0 ||
            !names_no_wait(profile_text(profile, frame->name), is_preempted)) {
            break;
        }
        first++;
    }
    bool is_kernel = count > 0 && profile_frame(profile, frames[first])->is_kernel != 0;
    return is_kernel || is_preempted ? first : 0;
}

int wait_leaf_find(struct profile *profile)
{
    cleanup_(leaf_finder_done) struct leaf_finder finder = {
        .profile = profile,
        .is_preempted = is_preemption(&profile->event),
    };
    int r = 0;
    if (!profile->event.is_wait) {
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
