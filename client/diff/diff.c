/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A comparison from its first recording to its rows, in their order.
 */
#include "diff.h"

#include "cleanup.h"
#include "compare.h"
#include "diff_parts.h"
#include "fault.h"
#include "grow.h"

#include <math.h>
#include <string.h>

const char *diff_by_name(size_t by)
{
    static const char *const names[] = {
        [DIFF_BY_FUNCTION] = "function",   [DIFF_BY_STACK] = "stack",   [DIFF_BY_MODULE] = "module",
        [DIFF_BY_COMMAND] = "command",     [DIFF_BY_THREAD] = "thread", [DIFF_BY_UNIT] = "unit",
        [DIFF_BY_CONTAINER] = "container", [DIFF_BY_USER] = "user",     [DIFF_BYS] = NULL,
    };
    return names[by];
}

struct diff *diff_new(const struct diff_options *options)
{
    struct diff *diff = calloc(1, sizeof *diff);
    if (diff != NULL) {
        diff->options = *options;
        diff->items.by = options->by;
    }
    return diff;
}

struct diff *diff_free(struct diff *diff)
{
    if (diff == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < diff->part_count; i++) {
        struct part *part = &diff->parts[i];
        fold_done(&part->fold);
        free(part->name);
        for (enum part_fact fact = 0; fact < FACTS; fact++) {
            free(part->facts[fact]);
        }
    }
    for (size_t i = 0; i < diff->warning_count; i++) {
        free(diff->warnings[i]);
    }
    free(diff->warnings);
    free(diff->refusal);
    profile_event_done(&diff->event);
    free(diff->parts);
    free(diff->rows);
    diff_items_done(&diff->items);
    free(diff);
    return NULL;
}

void diff_freep(struct diff **diff)
{
    *diff = diff_free(*diff);
}

int diff_add(struct diff *diff, enum diff_side side, const struct profile *profile,
             const char *name, double work)
{
    if (grow(diff->parts, diff->part_capacity, diff->part_count + 1) < 0) {
        return -ENOMEM;
    }
    struct part *part = &diff->parts[diff->part_count++];
    *part = (struct part){.side = side, .name = strdup(name), .work = work};
    diff->counts[side]++;
    int r = part->name == NULL ? -ENOMEM : part_take_facts(part, profile);
    if (r == 0 && diff->part_count == 1) {
        diff->unit = profile->event.is_clock ? 1 : fold_unit(profile);
        r = profile_event_set(&diff->event, profile->event.name, profile->event.unit);
    }
    if (r == 0 && strcmp(diff->event.unit, profile->event.unit) != 0) {
        diff->has_units = true;
    }
    return r < 0 ? r : fold_recording(&diff->items, profile, diff->unit, &part->fold);
}

int diff_find_path(const struct diff *diff, uint32_t item, const char ***ret, size_t *ret_count)
{
    size_t depth = 0;
    for (uint32_t at = item; at != INTERN_NONE; at = diff_items_get(&diff->items, at)->parent) {
        depth++;
    }
    const char **names = calloc(depth + 1, sizeof *names);
    if (names == NULL) {
        return -ENOMEM;
    }
    *ret = names;
    *ret_count = depth;
    for (uint32_t at = item; at != INTERN_NONE; at = diff_items_get(&diff->items, at)->parent) {
        names[--depth] = intern_text(&diff->items.texts, diff_items_get(&diff->items, at)->name);
    }
    return 0;
}

/* The larger of two changes by what rows are sorted by. */
static int compare_changes(const struct diff_row *a, const struct diff_row *b, bool is_by_total)
{
    double left = fabs(is_by_total ? a->total.change : a->self.change);
    double right = fabs(is_by_total ? b->total.change : b->self.change);
    return (right > left) - (right < left);
}

static int compare_rows(const void *left, const void *right, void *userdata)
{
    const struct diff_row *a = left;
    const struct diff_row *b = right;
    const struct diff *diff = userdata;
    bool is_by_total = diff->options.sorts_total;
    int a_rank = 2 * (is_by_total ? a->total.is_sure : a->self.is_sure) +
                 (a->self.is_sure || a->total.is_sure);
    int b_rank = 2 * (is_by_total ? b->total.is_sure : b->self.is_sure) +
                 (b->self.is_sure || b->total.is_sure);
    int r = b_rank - a_rank;
    r = r == 0 ? compare_changes(a, b, is_by_total) : r;
    r = r == 0 ? compare_changes(a, b, !is_by_total) : r;
    r = r == 0 ? strcmp(a->name, b->name) : r;
    return r == 0 ? compare_u64(a->item, b->item) : r;
}

const char *diff_refusal(const struct diff *diff)
{
    return diff->refusal;
}

int diff_compare(struct diff *diff, struct fault *reterr)
{
    int r = diff_check(diff, reterr);
    r = r < 0 ? r : diff_judge(diff);
    r = r < 0 ? r : diff_check_overlap(diff);
    if (r == 0 && diff->row_count > 0) {
        qsort_r(diff->rows, diff->row_count, sizeof *diff->rows, compare_rows, diff);
    }
    return r;
}

static bool is_change_empty(const struct diff_change *change)
{
    return change->samples[DIFF_BEFORE] == change->samples[DIFF_AFTER];
}

double diff_cpu_seconds(const struct diff *diff, enum diff_side side)
{
    double time_s = 0;
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        if (part->side == side && !(part->cpu_s > 0)) {
            return 0;
        }
        time_s += part->side == side ? part->cpu_s : 0;
    }
    return time_s / (double)diff->counts[side];
}

bool diff_hides_growth(const struct diff *diff, double part, double *ret_part)
{
    double before_s = diff_cpu_seconds(diff, DIFF_BEFORE);
    double after_s = diff_cpu_seconds(diff, DIFF_AFTER);
    *ret_part = before_s > 0 && after_s > 0 ? after_s / before_s - 1 : 0;
    return diff->options.per == DIFF_PER_CPU && *ret_part > part && *ret_part > DIFF_MUCH;
}

void diff_note_shared(struct diff *diff)
{
    diff->has_shared = true;
}

bool diff_is_identical(const struct diff *diff)
{
    const struct part *parts = diff->parts;
    bool is_identical = diff->has_shared && diff->counts[DIFF_BEFORE] == 1 &&
                        diff->counts[DIFF_AFTER] == 1 && diff->row_count > 0 &&
                        parts[0].length_s == parts[1].length_s &&
                        parts[0].expected == parts[1].expected &&
                        parts[0].fold.sample_count == parts[1].fold.sample_count &&
                        parts[0].fold.value == parts[1].fold.value;
    for (size_t i = 0; i < diff->row_count && is_identical; i++) {
        is_identical =
            is_change_empty(&diff->rows[i].self) && is_change_empty(&diff->rows[i].total);
    }
    return is_identical;
}

const struct diff_row *diff_rows(const struct diff *diff, size_t *ret_count)
{
    *ret_count = diff->row_count;
    return diff->rows;
}

const struct diff_row *diff_find_above(const struct diff *diff, double part, double *ret_part,
                                       bool *ret_is_visible)
{
    const struct diff_row *most[2] = {NULL, NULL}; /* by self, and by total */
    double parts[2] = {part, part};
    double whole = diff->wholes[DIFF_BEFORE];
    *ret_is_visible = true;
    for (size_t i = 0; i < diff->row_count; i++) {
        const struct diff_change *changes[] = {&diff->rows[i].self, &diff->rows[i].total};
        for (size_t at = 0; at < 2; at++) {
            const struct diff_change *change = changes[at];
            double missed = change->is_tested ? change->visible : change->change;
            *ret_is_visible = *ret_is_visible && missed <= part * whole;
            if (change->is_sure && change->change > parts[at] * whole) {
                parts[at] = change->change / whole;
                most[at] = &diff->rows[i];
            }
        }
    }
    size_t at = most[0] != NULL ? 0 : 1;
    *ret_part = parts[at];
    return most[at];
}
