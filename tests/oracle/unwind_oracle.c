/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples live processes, with copies of their stacks, stops them, and unwinds every sample twice:
 * by unwind_stack() and by libdw. Prints how the two agree, a line a process, and below it each
 * kind of disagreement with where it is. Processes are given as LABEL:PID. They are left stopped.
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
    OURS_WENT_ON, /* from the kernel's chain, where the copied bytes ended */
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
    size_t qualities[STACK_BAD_MEMORY + 1];
    size_t frame_count;
    struct note notes[NOTES_MAX];
    size_t note_count;
};

static const char *const quality_names[STACK_BAD_MEMORY + 1] = {
    "none", "complete", "short copy", "depth", "no rule", "bad memory",
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

static enum verdict judge(const struct pair *pair, size_t common)
{
    if (common < pair->ours.count && common < pair->libdw.count) {
        return DIFFERENT;
    }
    if (common < pair->libdw.count) {
        return LIBDW_LONGER;
    }
    if (common < pair->ours.count) {
        return pair->libdw_missed ? OURS_WENT_ON : OURS_LONGER;
    }
    return SAME;
}

static void describe(struct tally *tally, struct oracle_libdw *libdw, const struct pair *pair,
                     enum verdict verdict, size_t common)
{
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
                       pair->libdw_error, ours);
        break;
    case LIBDW_LONGER:
        (void)snprintf(text, sizeof text, "libdw longer: above %s, ours: %s; libdw has %s", last,
                       quality_names[pair->result.quality], theirs);
        break;
    case DIFFERENT:
        (void)snprintf(text, sizeof text, "different: above %s%s, ours %s, libdw %s", last,
                       common == 1 ? " (leaf)" : "", ours, theirs);
        break;
    case SAME:
    case OURS_WENT_ON:
    case VERDICT_COUNT:
        return;
    }
    add_note(tally, text);
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
        enum verdict verdict = judge(&pair, common);
        tally->verdicts[verdict]++;
        tally->qualities[pair.result.quality]++;
        tally->frame_count += pair.result.frame_count;
        describe(tally, libdw, &pair, verdict, common);
    }
    (void)oracle_libdw_free(libdw);
    (void)oracle_ours_free(ours);
}

static void print_tally(const struct oracle_process *process, const struct tally *tally)
{
    size_t count = process->sample_count;
    (void)printf("%-12s %7zu %6.1f %7zu %8zu %7zu %7zu %7zu  ", process->label, count,
                 count == 0 ? 0.0 : (double)tally->frame_count / (double)count,
                 tally->verdicts[SAME], tally->verdicts[OURS_WENT_ON], tally->verdicts[OURS_LONGER],
                 tally->verdicts[LIBDW_LONGER], tally->verdicts[DIFFERENT]);
    for (size_t i = STACK_COMPLETE; i <= STACK_BAD_MEMORY; i++) {
        (void)printf(" %s %zu", quality_names[i], tally->qualities[i]);
    }
    (void)printf(" (without registers %zu)\n", process->without_registers_count);
    for (size_t i = 0; i < tally->note_count; i++) {
        (void)printf("    %zu x %s\n", tally->notes[i].count, tally->notes[i].text);
    }
}

static bool read_options(int argc, char **argv, struct oracle_config *config)
{
    int option;
    while ((option = getopt(argc, argv, "c:d:n:p:")) != -1) {
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
                              "[-p PERIOD_US] LABEL:PID...\n");
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
        oracle_process_done(&processes[i]);
    }
    return EXIT_SUCCESS;
}
