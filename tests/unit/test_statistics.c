/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `diff` calls noise, against series that are made with known noise. All are drawn from fixed
 * seeds, so each run sees the same numbers; bounds are those that a right estimate exceeds once in
 * 10,000 seeds or less often.
 */
#include "statistics.h"
#include "unit_test.h"

#include <math.h>

#define BLOCK_SAMPLES 40
#define TRIALS        1000

/* From 0 to 1, neither included. */
static double draw(uint64_t *seed)
{
    return ((double)draw_below(seed, UINT64_C(1) << 30) + 0.5) / (double)(UINT64_C(1) << 30);
}

/* Of a normal distribution, by twelve uniform ones: their sum has a variance of 1. */
static double draw_normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += draw(seed);
    }
    return sum;
}

/* The samples of a function that has `part` of the time, in stretches that last for so many samples
 * on average. Returns their number; `ret` gets what blocks have more than their part. */
static double make_series(uint64_t *seed, double part, double stretch, double *ret)
{
    bool is_in = draw(seed) < part;
    double left = -log(draw(seed)) * (is_in ? stretch : stretch * (1 - part) / part);
    double sum = 0;
    for (size_t block = 0; block < SERIES_BLOCKS; block++) {
        ret[block] = 0;
        for (int i = 0; i < BLOCK_SAMPLES; i++) {
            for (; left < 0; is_in = !is_in) {
                left += -log(draw(seed)) * (is_in ? stretch * (1 - part) / part : stretch);
            }
            left -= 1;
            ret[block] += is_in;
        }
        sum += ret[block];
    }
    for (size_t block = 0; block < SERIES_BLOCKS; block++) {
        ret[block] -= sum / (double)SERIES_BLOCKS;
    }
    return sum;
}

/* How many of so many pairs of equal functions differ with a probability of at most 5 %, and of at
 * most 0.1 %. */
static void count_false(uint64_t seed, double part, double stretch, int ret_counts[2])
{
    double series[SERIES_BLOCKS];
    ret_counts[0] = 0;
    ret_counts[1] = 0;
    for (int i = 0; i < TRIALS; i++) {
        double first = make_series(&seed, part, stretch, series);
        struct noise a = noise_of_series(series, SERIES_BLOCKS);
        double second = make_series(&seed, part, stretch, series);
        struct noise b = noise_of_series(series, SERIES_BLOCKS);
        double variance = a.variance + b.variance + 2;
        double freedom =
            variance * variance /
            (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
        double probability = student_two_sided((second - first) / sqrt(variance), freedom);
        ret_counts[0] += probability <= 0.05;
        ret_counts[1] += probability <= 0.001;
    }
}

/*
 * Stretches of one sample are independent samples; of 400 they are ten blocks long, and less than a
 * hundred of them fill the recording. A rate of 5 % is 50 of 1000, with a deviation of sqrt(1000 *
 * 0.05 * 0.95) = 6.9; 4 of these are 28. The larger of two sizes of blocks counts, so a right
 * estimate is a little wide: a third of the rate shows that it is not much too wide. 0.1 % is 1 of
 * 1000, and more than 7 are as rare as 4 deviations.
 */
TEST(calls_equal_functions_different_as_often_as_it_says)
{
    static const double stretches[] = {1, 20, 400};
    static const double parts[] = {0.05, 0.4};
    for (size_t i = 0; i < COUNT_OF(stretches); i++) {
        for (size_t j = 0; j < COUNT_OF(parts); j++) {
            int counts[2];
            count_false(1 + i, parts[j], stretches[i], counts);
            if (counts[0] > 78 || counts[1] > 7 || (stretches[i] < 400 && counts[0] < 17)) {
                fail_msg("stretches of %g samples, %g of the time: %d and %d of %d", stretches[i],
                         parts[j], counts[0], counts[1], TRIALS);
            }
        }
    }
}

/* In stretches of 400 samples a sum varies by 2 * 400 * (1 - part) as much as that of independent
 * ones: blocks that were taken for independent would miss most of it. */
TEST(sees_that_samples_in_stretches_are_few_facts)
{
    double series[SERIES_BLOCKS];
    uint64_t seed = 5;
    double alone = 0;
    double stretched = 0;
    for (int i = 0; i < 100; i++) {
        (void)make_series(&seed, 0.3, 1, series);
        alone += noise_of_series(series, SERIES_BLOCKS).variance;
        (void)make_series(&seed, 0.3, 400, series);
        stretched += noise_of_series(series, SERIES_BLOCKS).variance;
    }
    assert_true(stretched > 200 * alone);
}

/* A function with 11 of each 37 samples is cut by blocks of 40, so that a block has more and the
 * next one less. What is cut off at the ends is all that can vary: at most 11 samples at each, and
 * not the 46 that independent samples would (10240 * 11/37 * 26/37 is 46 squared). */
TEST(sees_that_a_cycle_hardly_varies)
{
    double series[SERIES_BLOCKS];
    double part = (double)BLOCK_SAMPLES * 11 / 37;
    for (size_t block = 0; block < SERIES_BLOCKS; block++) {
        series[block] = -part;
        for (size_t i = 0; i < BLOCK_SAMPLES; i++) {
            series[block] += (block * BLOCK_SAMPLES + i) % 37 < 11;
        }
    }
    assert_true(noise_of_series(series, SERIES_BLOCKS).variance < 22 * 22);
}

/* The probabilities of few degrees of freedom have closed forms. */
TEST(knows_the_distribution_of_student)
{
    for (int i = 0; i < 15; i++) {
        double t = 0.1 * pow(1.7, i);
        double of_one = 1 - 2 / M_PI * atan(t);
        double of_two = 1 - t / sqrt(2 + t * t);
        assert_true(fabs(student_two_sided(t, 1) - of_one) < 1e-9 * of_one);
        assert_true(fabs(student_two_sided(t, 2) - of_two) < 1e-7 * of_two);
        assert_true(fabs(student_limit(of_two, 2) - t) < 1e-6 * t);
    }
    /* With many it is the normal one. */
    assert_true(fabs(student_two_sided(3, FREEDOM_MOST) - erfc(3 / sqrt(2))) < 1e-6);
    assert_true(fabs(student_limit(0.05, 10) - 2.228139) < 1e-5);
}

/* The example of the method's authors: four of fifteen. */
TEST(accepts_as_many_discoveries_as_the_rate_allows)
{
    static const double sorted[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
    assert_true(discovery_limit(sorted, COUNT_OF(sorted), 0.05) == 0.0095);
    assert_true(discovery_limit(sorted + 9, COUNT_OF(sorted) - 9, 0.05) < 0);
    assert_true(discovery_limit(sorted, 0, 0.05) < 0);
}

#define FUNCTIONS 200

/* 200 functions whose runs differ by 5 %, a tenth of which did change by half. The deviation of a
 * median of 200 squares is 12 % of the variance and so 6 % of its root, and the tenth moves it by
 * as much: within 30 %. */
TEST(learns_how_runs_differ_from_functions_that_did_not_change)
{
    struct contrast contrasts[FUNCTIONS];
    uint64_t seed = 3;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        double value = 1000 + (double)draw_below(&seed, 9000);
        double variance = value;
        double change = draw_normal(&seed) * sqrt(variance + 0.05 * 0.05 * value * value);
        change += i % 10 == 0 ? value / 2 : 0;
        contrasts[i] = (struct contrast){change * change, 1, variance, value * value};
    }
    struct spread spread = spread_learn(contrasts, FUNCTIONS);
    assert_true(spread.part > 0.035 && spread.part < 0.065);
    assert_true(spread.freedom > 10);
    assert_true(spread_learn(contrasts, 7).freedom == 0);
}

/* Variances of 6 degrees of freedom, three times as large as expected; of a function that is like
 * the others nothing of its own is believed, and one that is unlike them is found. */
TEST(learns_how_much_more_recordings_vary_than_expected)
{
    double factors[FUNCTIONS];
    uint64_t seed = 4;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        factors[i] = 0;
        for (int j = 0; j < 6; j++) {
            double normal = draw_normal(&seed);
            factors[i] += 3 * normal * normal / 6;
        }
    }
    struct excess learned = excess_learn(factors, FUNCTIONS, 6);
    assert_true(learned.factor > 2.5 && learned.factor < 3.5);
    assert_true(learned.freedom > 30);
    struct excess own = excess_moderate(&learned, 6, 6);
    assert_true(own.factor > learned.factor && own.factor < 4);
    assert_true(excess_moderate(&learned, 0.1, 6).factor == learned.factor);
    assert_true(excess_probability(&learned, 6, 6) > 0.01);
    assert_true(excess_probability(&learned, 60, 6) < 1e-4);
}
