/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adds the recordings of each side up and says which changes are sure. The noise of a side is what
 * its recordings have in themselves, and how much one run differs from the next. The latter is
 * learned between the recordings of a side, from the functions that are measured well. Each
 * function's own difference between them counts too, moderated by those of the others; one that
 * differs far more than others is judged by itself. Self and total are tests of one family.
 *
 * All of that is of a function's part of its recording's samples. By time and by work the value is
 * that part of a whole, which differs from run to run too: by how fast the machine is, or how much
 * there is to do. That is the same for all functions of a run, so it is measured once, on the
 * whole, and however many functions there are, it is known no better than by as many recordings.
 *
 * With few recordings a side nothing is tested: how runs differ is not in the data. What is left is
 * the noise that the recordings have in themselves.
 */
#include "cleanup.h"
#include "compare.h"
#include "diff_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define TESTED_SAMPLES  10   /* that both sides must have together */
#define WELL_MEASURED   0.01 /* the square of the relative noise of what is learned from; */
#define FAIRLY_MEASURED 0.04 /* if these are too few */
#define ASSUMED_PART    0.01 /* how much runs differ in what they spend their time with */
#define OWN_LIMIT       0.01 /* the probability up to which a function is unlike others */
#define SEEN_LIMIT      0.4  /* of Student's distribution: 4 of 5 to one side */
#define MARGIN_LIMIT    0.05 /* of the intervals of changes so many miss the real one */
#define SELF            0
#define TOTAL           1
#define MEASURES        2

size_t diff_recordings_needed(double discovery_rate)
{
    /* With n a side, 2 of the 2^2n ways in which runs come out part the sides. */
    size_t needed = 2;
    while (ldexp(2, -2 * (int)needed) > discovery_rate) {
        needed++;
    }
    return needed;
}

bool diff_is_judged(const struct diff *diff)
{
    size_t needed = diff_recordings_needed(diff->options.discovery_rate);
    return diff->counts[DIFF_BEFORE] >= needed && diff->counts[DIFF_AFTER] >= needed;
}

/* Sums over the recordings of a side. */
struct side_sum {
    double samples;
    double variance;
    double variance_freedom; /* sum of squared variances by their degrees of freedom */
    double squares;          /* of the recordings' samples */
    double products;         /* of them with all samples of the recording */
};

/* Of one item, self or total. */
struct pair_sum {
    struct side_sum sides[DIFF_SIDES];
};

struct judging {
    struct diff *diff;
    enum fold_given given;
    struct pair_sum *sums; /* owned; of each item self and total */
    size_t item_count;
    double all[DIFF_SIDES]; /* samples */
    double all_squares[DIFF_SIDES];
    double whole_variance[DIFF_SIDES]; /* of a side's whole, as a part of it */
    double freedom;                    /* of what is between the recordings of a side */
    struct excess excess;
    double *sorted; /* owned; probabilities */
};

static void judging_done(struct judging *judging)
{
    free(judging->sums);
    free(judging->sorted);
}

/* `samples`: in the unit of the comparison, as all that is summed up. */
static void add_count(struct side_sum *sum, double samples, const struct fold_noise *noise,
                      double all)
{
    double variance = noise->variance;
    sum->samples += samples;
    sum->variance += variance;
    sum->variance_freedom += variance * variance / (double)noise->freedom;
    sum->squares += samples * samples;
    sum->products += samples * all;
}

static int add_up(struct judging *judging)
{
    struct diff *diff = judging->diff;
    judging->item_count = diff->items.items.item_count;
    judging->sums = calloc(judging->item_count + 1, MEASURES * sizeof *judging->sums);
    if (judging->sums == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        double all = fold_whole(&part->fold);
        diff->divisors[part->side] += part->divisor;
        judging->all[part->side] += all;
        judging->all_squares[part->side] += all * all;
        for (size_t at = 0; at < part->fold.tally_count; at++) {
            const struct fold_tally *tally = &part->fold.tallies[at];
            struct pair_sum *sums = &judging->sums[MEASURES * (size_t)tally->item];
            add_count(&sums[SELF].sides[part->side], fold_self(&part->fold, at),
                      &tally->self.noise[judging->given], all);
            add_count(&sums[TOTAL].sides[part->side], fold_total(&part->fold, at),
                      &tally->total.noise[judging->given], all);
        }
    }
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        judging->freedom += (double)(diff->counts[side] - 1);
    }
    return 0;
}

/* Measures how much the wholes of one side differ. */
static void measure_whole(struct judging *judging)
{
    struct diff *diff = judging->diff;
    double squares = 0;
    double within[DIFF_SIDES] = {0};
    if (diff->options.per == DIFF_PER_CPU || !diff_is_judged(diff)) {
        return;
    }
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        double all = fold_whole(&part->fold);
        double deviation = all / (part->divisor * diff->wholes[part->side]) - 1;
        squares += deviation * deviation;
        within[part->side] +=
            all + (diff->options.per == DIFF_PER_TIME ? part->fold.whole_noise.variance : 0);
    }
    diff->verdict.whole_spread = sqrt(squares / judging->freedom);
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        double between = squares / judging->freedom / (double)diff->counts[side];
        judging->whole_variance[side] =
            fmax(between, within[side] / (judging->all[side] * judging->all[side]));
    }
}

/* The squares of what the spread between runs is a part of: only what is moved between a function
 * and the others. */
static double squares_of(const struct judging *judging, const struct side_sum *sum,
                         enum diff_side side)
{
    double others = 1 - sum->samples / judging->all[side];
    return sum->squares * others * others;
}

/* The variance of a side's sum by what is within its recordings. Each may miss a sample. */
static double variance_within(const struct judging *judging, const struct side_sum *sum,
                              enum diff_side side)
{
    return sum->variance + (double)judging->diff->counts[side];
}

/* The same by how its recordings differ from one another. */
static double variance_between(const struct judging *judging, const struct side_sum *sum,
                               enum diff_side side)
{
    double count = (double)judging->diff->counts[side];
    double part = sum->samples / judging->all[side];
    double squares =
        sum->squares - 2 * part * sum->products + part * part * judging->all_squares[side];
    return fmax(squares, 0) * count / (count - 1);
}

static double value_of(const struct judging *judging, const struct pair_sum *sum,
                       enum diff_side side)
{
    return sum->sides[side].samples / judging->diff->divisors[side];
}

/* What a sum says of how runs differ: of each side with several recordings. Returns how many
 * contrasts that are. */
static size_t find_contrasts(const struct judging *judging, const struct pair_sum *sum,
                             double measured, struct contrast *ret)
{
    size_t count = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        const struct side_sum *of_side = &sum->sides[side];
        double within = variance_within(judging, of_side, side);
        double squares = squares_of(judging, of_side, side);
        if (judging->diff->counts[side] > 1 && within < measured * squares) {
            ret[count++] =
                (struct contrast){variance_between(judging, of_side, side),
                                  (double)(judging->diff->counts[side] - 1), within, squares};
        }
    }
    return count;
}

static struct spread learn_from(const struct judging *judging, double measured,
                                struct contrast *contrasts)
{
    size_t count = 0;
    for (size_t i = 0; i < judging->item_count; i++) {
        count += find_contrasts(judging, &judging->sums[MEASURES * i + SELF], measured,
                                &contrasts[count]);
    }
    return spread_learn(contrasts, count);
}

static int learn_spread(struct judging *judging)
{
    struct verdict *verdict = &judging->diff->verdict;
    cleanup_(freep) struct contrast *contrasts =
        calloc(judging->item_count + 1, DIFF_SIDES * sizeof *contrasts);
    if (contrasts == NULL) {
        return -ENOMEM;
    }
    if (!diff_is_judged(judging->diff)) {
        return 0;
    }
    verdict->spread = learn_from(judging, WELL_MEASURED, contrasts);
    if (verdict->spread.freedom <= 0) {
        verdict->spread = learn_from(judging, FAIRLY_MEASURED, contrasts);
    }
    verdict->is_assumed = verdict->spread.freedom <= 0;
    if (verdict->is_assumed) {
        verdict->spread.part = ASSUMED_PART;
    }
    return 0;
}

/* The variance of a side's sum, with how much runs differ. */
static double variance_of(const struct judging *judging, const struct side_sum *sum,
                          enum diff_side side)
{
    double part = judging->diff->verdict.spread.part;
    return variance_within(judging, sum, side) + part * part * squares_of(judging, sum, side);
}

/* How many times more a sum varies between recordings than it should. */
static double factor_of(const struct judging *judging, const struct pair_sum *sum)
{
    double factor = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        double freedom = (double)(judging->diff->counts[side] - 1);
        factor += freedom / judging->freedom * variance_between(judging, &sum->sides[side], side) /
                  variance_of(judging, &sum->sides[side], side);
    }
    return factor;
}

static bool is_well_measured(const struct judging *judging, const struct pair_sum *sum)
{
    bool is_well = true;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        const struct side_sum *of_side = &sum->sides[side];
        is_well = is_well && variance_within(judging, of_side, side) <
                                 WELL_MEASURED * squares_of(judging, of_side, side);
    }
    return is_well;
}

static int learn_excess(struct judging *judging)
{
    cleanup_(freep) double *factors = calloc(judging->item_count + 1, sizeof *factors);
    size_t count = 0;
    if (factors == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < judging->item_count && diff_is_judged(judging->diff); i++) {
        const struct pair_sum *sum = &judging->sums[MEASURES * i + SELF];
        if (is_well_measured(judging, sum)) {
            factors[count++] = factor_of(judging, sum);
        }
    }
    judging->excess = excess_learn(factors, count, judging->freedom);
    return 0;
}

/* The noise of a change by what a sum itself has between the recordings of the sides. */
static struct noise noise_of_own(const struct judging *judging, const struct pair_sum *sum)
{
    struct noise noise = {0, 0};
    double weights = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        const struct side_sum *of_side = &sum->sides[side];
        double square = judging->diff->divisors[side] * judging->diff->divisors[side];
        double freedom = (double)(judging->diff->counts[side] - 1);
        double variance =
            fmax(variance_between(judging, of_side, side), variance_of(judging, of_side, side));
        noise.variance += variance / square;
        weights += variance * variance / (square * square * freedom);
    }
    noise.freedom = noise.variance * noise.variance / weights;
    return noise;
}

/* The noise that a change has by what is within the recordings, and no more. */
static struct noise noise_within(const struct judging *judging, const struct pair_sum *sum)
{
    struct noise noise = {0, 0};
    double weights = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        const struct side_sum *of_side = &sum->sides[side];
        double square = judging->diff->divisors[side] * judging->diff->divisors[side];
        noise.variance += variance_within(judging, of_side, side) / square;
        weights += of_side->variance_freedom / (square * square);
    }
    noise.freedom = weights > 0 ? noise.variance * noise.variance / weights : FREEDOM_MOST;
    noise.freedom = fmin(noise.freedom, FREEDOM_MOST);
    return noise;
}

/* The noise of a change of the part that a sum has. */
static struct noise noise_of_part(const struct judging *judging, const struct pair_sum *sum)
{
    double factor = factor_of(judging, sum);
    if (excess_probability(&judging->excess, factor, judging->freedom) < OWN_LIMIT) {
        return noise_of_own(judging, sum);
    }
    struct excess own = excess_moderate(&judging->excess, factor, judging->freedom);
    struct noise noise = {0, own.freedom};
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        double square = judging->diff->divisors[side] * judging->diff->divisors[side];
        noise.variance += own.factor * variance_of(judging, &sum->sides[side], side) / square;
    }
    return noise;
}

/* The noise of a change. */
static struct noise noise_of(const struct judging *judging, const struct pair_sum *sum)
{
    if (!diff_is_judged(judging->diff)) {
        return noise_within(judging, sum);
    }
    struct noise noise = noise_of_part(judging, sum);
    double whole = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        double value = value_of(judging, sum, side);
        whole += value * value * judging->whole_variance[side];
    }
    double both = noise.variance + whole;
    double weights =
        noise.variance * noise.variance / noise.freedom + whole * whole / judging->freedom;
    return (struct noise){both, fmin(both * both / weights, FREEDOM_MOST)};
}

static void take_change(const struct judging *judging, const struct pair_sum *sum, bool may_test,
                        struct diff_change *ret)
{
    double samples = 0;
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        double value = round(sum->sides[side].samples * judging->diff->unit);
        ret->samples[side] = (uint64_t)fmin(value, (double)PROFILE_TOTAL_MAX);
        ret->values[side] = value_of(judging, sum, side);
        samples += sum->sides[side].samples;
    }
    ret->change = ret->values[DIFF_AFTER] - ret->values[DIFF_BEFORE];
    ret->has_margin = may_test && samples >= TESTED_SAMPLES;
    ret->is_tested = ret->has_margin && diff_is_judged(judging->diff);
    ret->probability = 1;
    if (ret->has_margin) {
        struct noise noise = noise_of(judging, sum);
        double deviation = sqrt(noise.variance);
        ret->margin = deviation * student_limit(MARGIN_LIMIT, noise.freedom);
        ret->probability =
            ret->is_tested ? student_two_sided(ret->change / deviation, noise.freedom) : 1;
    }
}

static const char *text_or_null(const struct diff *diff, uint32_t text)
{
    return text == INTERN_NONE ? NULL : intern_text(&diff->items.texts, text);
}

/* A build of a module on a side, as a key. */
struct build {
    uint32_t module;
    uint32_t build_id;
    uint32_t side;
};

static struct build build_of(const struct diff_item *item, enum diff_side side)
{
    return (struct build){item->module, item->build_id, (uint32_t)side};
}

/* Notes which builds have functions that are called by addresses; and without a build, which
 * modules. */
static int find_builds(const struct judging *judging, struct intern *builds)
{
    int r = 0;
    for (size_t i = 0; i < judging->item_count && r == 0; i++) {
        const struct diff_item *item = diff_items_get(&judging->diff->items, (uint32_t)i);
        for (enum diff_side side = 0; side < DIFF_SIDES && r == 0; side++) {
            struct build build = build_of(item, side);
            uint32_t number = 0;
            if (item->build_id != INTERN_NONE &&
                judging->sums[MEASURES * i + TOTAL].sides[side].samples > 0) {
                r = intern_add(builds, &build, sizeof build, &number);
                build.build_id = INTERN_NONE;
                r = r < 0 ? r : intern_add(builds, &build, sizeof build, &number);
            }
        }
    }
    return r;
}

/* Whether an item's name has no meaning on one of the sides, which has another build, or may have:
 * its module has no build-id. */
static bool is_unmatched(const struct judging *judging, const struct diff_item *item,
                         const struct intern *builds)
{
    const char *build_id = text_or_null(judging->diff, item->build_id);
    bool is_other = build_id != NULL && build_id[0] == '\0';
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        struct build build = build_of(item, side);
        bool has_build = intern_find(builds, &build, sizeof build) != INTERN_NONE;
        build.build_id = INTERN_NONE;
        is_other =
            is_other || (!has_build && intern_find(builds, &build, sizeof build) != INTERN_NONE);
    }
    return item->build_id != INTERN_NONE && is_other;
}

/* The same of each item, and of a stack also where one of its callers is such. Callers have smaller
 * numbers. `*ret` is returned: free(). Returns 0, or -ENOMEM. */
static int find_unmatched(const struct judging *judging, bool **ret)
{
    cleanup_(intern_done) struct intern builds = {0};
    bool *unmatched = calloc(judging->item_count + 1, sizeof *unmatched);
    if (unmatched == NULL || find_builds(judging, &builds) < 0) {
        free(unmatched);
        return -ENOMEM;
    }
    for (size_t i = 0; i < judging->item_count; i++) {
        const struct diff_item *item = diff_items_get(&judging->diff->items, (uint32_t)i);
        unmatched[i] =
            is_unmatched(judging, item, &builds) || (item->parent < i && unmatched[item->parent]);
    }
    *ret = unmatched;
    return 0;
}

static int make_rows(struct judging *judging)
{
    struct diff *diff = judging->diff;
    cleanup_(freep) bool *unmatched = NULL;
    diff->rows = calloc(judging->item_count + 1, sizeof *diff->rows);
    if (diff->rows == NULL || find_unmatched(judging, &unmatched) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < judging->item_count; i++) {
        const struct diff_item *item = diff_items_get(&diff->items, (uint32_t)i);
        const struct pair_sum *sums = &judging->sums[MEASURES * i];
        struct diff_row *row = &diff->rows[diff->row_count];
        if (sums[TOTAL].sides[DIFF_BEFORE].samples + sums[TOTAL].sides[DIFF_AFTER].samples <= 0) {
            continue;
        }
        *row = (struct diff_row){
            .name = text_or_null(diff, item->name),
            .module = text_or_null(diff, diff->items.paths[i]),
            .build_id = text_or_null(diff, item->build_id),
            .item = (uint32_t)i,
            .is_unmatched = unmatched[i],
        };
        take_change(judging, &sums[SELF], !row->is_unmatched, &row->self);
        take_change(judging, &sums[TOTAL], !row->is_unmatched, &row->total);
        diff->unmatched_count += row->is_unmatched;
        diff->row_count++;
    }
    return 0;
}

/* What is sure, and what could have been seen. */
static void conclude_change(const struct judging *judging, struct diff_change *change,
                            uint32_t item, size_t measure, double seen_probability)
{
    struct verdict *verdict = &judging->diff->verdict;
    if (!change->is_tested) {
        return;
    }
    struct noise noise = noise_of(judging, &judging->sums[MEASURES * (size_t)item + measure]);
    change->is_sure = change->probability <= verdict->limit;
    verdict->sure_count += change->is_sure;
    change->visible = sqrt(noise.variance) * (student_limit(seen_probability, noise.freedom) +
                                              student_limit(SEEN_LIMIT, noise.freedom));
}

static int conclude(struct judging *judging)
{
    struct diff *diff = judging->diff;
    struct verdict *verdict = &diff->verdict;
    judging->sorted = calloc(diff->row_count + 1, MEASURES * sizeof *judging->sorted);
    if (judging->sorted == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        const struct diff_change *changes[] = {&diff->rows[i].self, &diff->rows[i].total};
        for (size_t at = 0; at < MEASURES; at++) {
            if (changes[at]->is_tested) {
                judging->sorted[verdict->test_count++] = changes[at]->probability;
            }
        }
        verdict->row_count += diff->rows[i].total.has_margin;
    }
    qsort(judging->sorted, verdict->test_count, sizeof *judging->sorted, compare_doubles);
    verdict->limit =
        discovery_limit(judging->sorted, verdict->test_count, diff->options.discovery_rate);
    size_t accepted = 0;
    while (accepted < verdict->test_count && judging->sorted[accepted] <= verdict->limit) {
        accepted++;
    }
    /* One more change would have to be as clear as that. */
    double seen_probability = diff->options.discovery_rate * (double)(accepted + 1) /
                              (double)(verdict->test_count + (accepted == verdict->test_count));
    for (size_t i = 0; i < diff->row_count; i++) {
        struct diff_row *row = &diff->rows[i];
        conclude_change(judging, &row->self, row->item, SELF, seen_probability);
        conclude_change(judging, &row->total, row->item, TOTAL, seen_probability);
        verdict->sure_rows += row->self.is_sure || row->total.is_sure;
    }
    return 0;
}

int diff_judge(struct diff *diff)
{
    bool is_of_time = diff->options.per == DIFF_PER_TIME && !diff_is_judged(diff);
    cleanup_(judging_done) struct judging judging = {
        .diff = diff,
        .given = is_of_time ? FOLD_GIVEN_TIME : FOLD_GIVEN_SAMPLES,
    };
    int r = add_up(&judging);
    if (r == 0) {
        measure_whole(&judging);
    }
    r = r < 0 ? r : learn_spread(&judging);
    r = r < 0 ? r : learn_excess(&judging);
    r = r < 0 ? r : make_rows(&judging);
    return r < 0 ? r : conclude(&judging);
}
