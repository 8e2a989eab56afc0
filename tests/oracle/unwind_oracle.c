/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples live processes, with copies of their stacks, stops them, and unwinds every sample twice:
 * by unwind_stack() and by libdw. Prints how the two agree, a line a process, and below it each
 * kind of disagreement with where it is. Processes are given as LABEL:PID. They are left stopped.
 *
 * Then it unwinds each sample again from less and less of its copy: what comes out, from bytes and
 * the kernel's chain, must be how the stack from all bytes begins, and the whole of it if it is
 * called complete. It may have more only of a stack that all bytes do not lead to the root of: the
 * chain knows no order of stacks.
 */
#include "oracle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX ((size_t)32)
#define NOTES_MAX     ((size_t)512)
#define NAME_BYTES    128

enum verdict {
    SAME,
    OURS_JOINED,   /* ours went on from the kernel's chain, where the copied bytes ended */
    LIBDW_NOWHERE, /* libdw went on to an address that is no code */
    LIBDW_ASTRAY,  /* libdw did not see that a function had gone over to another stack */
    OURS_MARKED,   /* ours ends or goes on elsewhere, and is marked as not proved: it claims nothing
                    */
    OURS_LONGER,
    LIBDW_LONGER,
    DIFFERENT,
    VERDICT_COUNT,
};

struct note {
    char text[4 * NAME_BYTES];
    size_t count;
};

struct tally {
    size_t verdicts[VERDICT_COUNT];
    size_t qualities[STACK_UNPROVED + 1];
    size_t frame_count;
    size_t cut_count; /* stacks that end early when less of them is copied, */
    size_t cut_joined_count;
    size_t cut_complete_count; /* or that the kernel's chain completes */
    size_t cut_wrong_count;
    struct note notes[NOTES_MAX];
    size_t note_count;
};

static const char *const quality_names[STACK_UNPROVED + 1] = {
    "none", "complete", "short copy", "depth", "no rule", "bad memory", "stitched", "unproved",
};

static void add_note(struct tally *tally, const char *text)
{
    for (size_t i = 0; i < tally->note_count; i++) {
        if (strcmp(tally->notes[i].text, text) == 0) {
            tally->notes[i].count++;
            return;
        }
    }
    if (tally->note_count < NOTES_MAX) {
        struct note *note = &tally->notes[tally->note_count++];
        (void)snprintf(note->text, sizeof note->text, "%s", text);
        note->count = 1;
    }
}

struct pair {
    struct oracle_stack ours, libdw;
    struct unwind_result result;
    bool libdw_missed;
    const char *libdw_error;
};

static size_t common_count(const struct pair *pair)
{
    size_t i = 0;
    while (i < pair->ours.count && i < pair->libdw.count &&
           pair->ours.frames[i] == pair->libdw.frames[i]) {
        i++;
    }
    return i;
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Go's call frames describe these as if nothing happened to the stack pointer, and libdw reads what
 * lies on the other stack by chance. Ours ends there, or goes on from the kernel's chain. Not so at
 * a root in the sampled function, which may not be there yet.
 */
static bool is_on_other_stack(struct oracle_libdw *libdw, const struct pair *pair, size_t common)
{
    static const char *const roots[] = {"runtime.mcall", "runtime.morestack.abi0",
                                        "runtime.mstart.abi0"};
    static const char *const switches[] = {"runtime.systemstack.abi0", "runtime.asmcgocall.abi0",
                                           "runtime.nanotime1.abi0", "time.now"};
    char text[NAME_BYTES];
    if (common == 0) {
        return false;
    }
    oracle_libdw_name(libdw, pair->ours.frames[common - 1], text, sizeof text);
    const char *name = strchr(text, '!');
    if (name == NULL) {
        return false;
    }
    if (pair->result.crossed) {
        return is_one_of(name + 1, switches, sizeof switches / sizeof *switches);
    }
    return common > 1 && common == pair->ours.count && pair->result.quality == STACK_COMPLETE &&
           is_one_of(name + 1, roots, sizeof roots / sizeof *roots);
}

static enum verdict judge(const struct pair *pair, size_t common, struct oracle_ours *ours,
                          struct oracle_libdw *libdw)
{
    if ((common < pair->libdw.count || common < pair->ours.count) &&
        is_on_other_stack(libdw, pair, common)) {
        return LIBDW_ASTRAY;
    }
    const bool is_unproved = pair->result.quality == STACK_UNPROVED;
    if (common < pair->ours.count && common < pair->libdw.count) {
        return is_unproved ? OURS_MARKED : DIFFERENT;
    }
    if (common < pair->libdw.count) {
        bool is_marked = is_unproved || pair->result.quality == STACK_NO_RULE;
        bool is_code = oracle_ours_has_code(ours, pair->libdw.frames[common] - 1);
        return !is_code ? LIBDW_NOWHERE : is_marked ? OURS_MARKED : LIBDW_LONGER;
    }
    if (common < pair->ours.count) {
        return pair->libdw_missed && pair->result.fp_frame_count > 0 ? OURS_JOINED : OURS_LONGER;
    }
    return SAME;
}

static void describe(struct tally *tally, struct oracle_libdw *libdw, const struct pair *pair,
                     enum verdict verdict, size_t common)
{
    const char *quality = quality_names[pair->result.quality];
    char last[NAME_BYTES] = "nothing";
    char ours[NAME_BYTES] = "";
    char theirs[NAME_BYTES] = "";
    char text[4 * NAME_BYTES];
    if (common > 0) {
        oracle_libdw_name(libdw, pair->ours.frames[common - 1], last, sizeof last);
    }
    if (common < pair->ours.count) {
        oracle_libdw_name(libdw, pair->ours.frames[common], ours, sizeof ours);
    }
    if (common < pair->libdw.count) {
        oracle_libdw_name(libdw, pair->libdw.frames[common], theirs, sizeof theirs);
    }
    switch (verdict) {
    case OURS_LONGER:
        (void)snprintf(text, sizeof text, "ours longer: above %s, libdw: %s; ours has %s", last,
                       pair->libdw_missed ? "not copied" : pair->libdw_error, ours);
        break;
    case LIBDW_LONGER:
        (void)snprintf(text, sizeof text, "libdw longer: above %s, ours: %s; libdw has %s", last,
                       quality, theirs);
        break;
    case OURS_MARKED:
        (void)snprintf(text, sizeof text, "ours marked: above %s, ours %s: %s, libdw %s", last,
                       quality, ours, theirs);
        break;
    case DIFFERENT:
        (void)snprintf(text, sizeof text, "different: above %s%s, ours %s, libdw %s", last,
                       common == 1 ? " (leaf)" : "", ours, theirs);
        break;
    case LIBDW_NOWHERE:
        (void)snprintf(text, sizeof text, "libdw to nowhere: above %s, ours: %s", last, quality);
        break;
    case LIBDW_ASTRAY:
        (void)snprintf(text, sizeof text, "libdw astray: above %s, ours %s (%s), libdw %s", last,
                       ours, quality, common < pair->libdw.count ? theirs : pair->libdw_error);
        break;
    case SAME:
        if (pair->result.quality == STACK_COMPLETE) {
            return;
        }
        (void)snprintf(text, sizeof text, "same: above %s, ours: %s", last, quality);
        break;
    case OURS_JOINED:
    case VERDICT_COUNT:
        return;
    }
    add_note(tally, text);
}

static void describe_cut(struct tally *tally, struct oracle_libdw *libdw,
                         const struct oracle_stack *stack, const struct unwind_result *result,
                         const struct pair *pair)
{
    char last[NAME_BYTES] = "nothing";
    char text[4 * NAME_BYTES];
    size_t common = 0;
    while (common < stack->count && common < pair->ours.count &&
           stack->frames[common] == pair->ours.frames[common]) {
        common++;
    }
    if (common > 0) {
        oracle_libdw_name(libdw, stack->frames[common - 1], last, sizeof last);
    }
    (void)snprintf(text, sizeof text, "wrong with fewer bytes: above %s, %s, with all bytes %s",
                   last, quality_names[result->quality], quality_names[pair->result.quality]);
    add_note(tally, text);
}

static bool agrees_with_whole(const struct oracle_stack *stack, const struct unwind_result *result,
                              const struct pair *pair)
{
    const struct oracle_stack *whole = &pair->ours;
    size_t count = stack->count < whole->count ? stack->count : whole->count;
    if (memcmp(stack->frames, whole->frames, count * sizeof *stack->frames) != 0) {
        return false;
    }
    bool is_rooted = result->quality == STACK_COMPLETE;
    bool is_whole_rooted = pair->result.quality == STACK_COMPLETE;
    return (stack->count == whole->count && is_rooted == is_whole_rooted) ||
           (stack->count < whole->count && !is_rooted) ||
           (stack->count > whole->count && !is_whole_rooted);
}

/* The whole stack is in `pair`. */
static void compare_cut(struct oracle_ours *ours, struct oracle_libdw *libdw,
                        const struct oracle_sample *sample, const struct pair *pair,
                        struct tally *tally)
{
    static const size_t cuts_bytes[] = {256, 1024, 4096};
    static struct oracle_stack stack;
    for (size_t i = 0; i < sizeof cuts_bytes / sizeof *cuts_bytes; i++) {
        struct oracle_sample cut = *sample;
        struct unwind_result result;
        if (cut.stack_bytes <= cuts_bytes[i]) {
            continue;
        }
        cut.stack_bytes = cuts_bytes[i];
        cut.stack_cut = true;
        oracle_ours_unwind(ours, &cut, &stack, &result);
        tally->cut_count++;
        tally->cut_joined_count += result.fp_frame_count > pair->result.fp_frame_count;
        tally->cut_complete_count += result.quality == STACK_COMPLETE;
        if (!agrees_with_whole(&stack, &result, pair)) {
            tally->cut_wrong_count++;
            describe_cut(tally, libdw, &stack, &result, pair);
        }
    }
}

static void compare(const struct oracle_process *process, struct tally *tally)
{
    struct oracle_ours *ours = oracle_ours_open(process->pid);
    struct oracle_libdw *libdw = oracle_libdw_open(process->pid);
    static struct pair pair;
    for (size_t i = 0; i < process->sample_count; i++) {
        const struct oracle_sample *sample = &process->samples[i];
        oracle_ours_unwind(ours, sample, &pair.ours, &pair.result);
        oracle_libdw_unwind(libdw, sample, &pair.libdw, &pair.libdw_missed, &pair.libdw_error);
        size_t common = common_count(&pair);
        enum verdict verdict = judge(&pair, common, ours, libdw);
        tally->verdicts[verdict]++;
        tally->qualities[pair.result.quality]++;
        tally->frame_count += pair.result.frame_count;
        describe(tally, libdw, &pair, verdict, common);
        compare_cut(ours, libdw, sample, &pair, tally);
    }
    (void)oracle_libdw_free(libdw);
    (void)oracle_ours_free(ours);
}

static void print_tally(const struct oracle_process *process, const struct tally *tally)
{
    size_t count = process->sample_count;
    (void)printf("%-12s %7zu %6.1f", process->label, count,
                 count == 0 ? 0.0 : (double)tally->frame_count / (double)count);
    for (size_t i = 0; i < VERDICT_COUNT; i++) {
        (void)printf(" %6zu", tally->verdicts[i]);
    }
    (void)printf(" | %7zu %7zu %7zu %5zu |", tally->cut_count, tally->cut_joined_count,
                 tally->cut_complete_count, tally->cut_wrong_count);
    for (size_t i = STACK_COMPLETE; i <= STACK_UNPROVED; i++) {
        (void)printf(" %6zu", tally->qualities[i]);
    }
    (void)printf("\n");
    if (process->without_registers_count > 0) {
        (void)printf("    %zu x left out, without registers\n", process->without_registers_count);
    }
    for (size_t i = 0; i < tally->note_count; i++) {
        (void)printf("    %zu x %s\n", tally->notes[i].count, tally->notes[i].text);
    }
}

static bool read_options(int argc, char **argv, struct oracle_config *config)
{
    int option;
    while ((option = getopt(argc, argv, "c:d:n:p:s:")) != -1) {
        unsigned long long value = optarg == NULL ? 0 : strtoull(optarg, NULL, 10);
        switch (option) {
        case 'c':
            config->stack_copy_bytes = (uint32_t)value;
            break;
        case 'd':
            config->duration_ns = value * 1000000;
            break;
        case 'n':
            config->samples_max = value;
            break;
        case 'p':
            config->period_ns = value * 1000;
            break;
        case 's':
            config->stitch_bytes = value;
            break;
        default:
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct oracle_process processes[PROCESSES_MAX];
    static struct tally tally;
    struct oracle_config config = {.period_ns = 1000000,
                                   .duration_ns = UINT64_C(5000000000),
                                   .stack_copy_bytes = 65000,
                                   .samples_max = SIZE_MAX};
    size_t count = 0;
    bool valid = read_options(argc, argv, &config);
    for (int i = optind; i < argc && count < PROCESSES_MAX; i++) {
        char *colon = strrchr(argv[i], ':');
        if (colon == NULL) {
            valid = false;
            break;
        }
        *colon = '\0';
        processes[count].label = argv[i];
        processes[count++].pid = (pid_t)strtol(colon + 1, NULL, 10);
    }
    if (!valid || count == 0) {
        (void)fprintf(stderr, "usage: unwind_oracle [-c COPY_BYTES] [-d MS] [-n SAMPLES] "
                              "[-p PERIOD_US] [-s STITCHED_COPY_BYTES] LABEL:PID...\n");
        return 2;
    }
    oracle_record(&config, processes, count);
    for (size_t i = 0; i < count; i++) {
        if (kill(processes[i].pid, SIGSTOP) < 0) {
            (void)printf("%s ended too early\n", processes[i].label);
            return EXIT_FAILURE;
        }
    }
    for (size_t i = 0; i < count; i++) {
        memset(&tally, 0, sizeof tally);
        compare(&processes[i], &tally);
        print_tally(&processes[i], &tally);
        if (config.stitch_bytes > 0) {
            struct oracle_ours *ours = oracle_ours_open(processes[i].pid);
            oracle_stitch(ours, &processes[i], config.stitch_bytes);
            (void)oracle_ours_free(ours);
        }
        oracle_process_done(&processes[i]);
    }
    return EXIT_SUCCESS;
}
