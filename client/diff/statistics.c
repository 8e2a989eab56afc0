/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks of time, Student's distribution, and the choice of what to believe of many tests.
 *
 * The blocking method: the variance of a sum of blocks is right when the blocks are independent,
 * too small while neighbours are alike, and too large where one has what the other lacks, as when
 * they cut a cycle of the program. Joined by twos they become independent, unless the program has
 * phases as long as the recording. So the first size of blocks is taken from which on neighbours
 * are neither; and as that is judged by few blocks, the one above it counts too where
 * it says more. Where even the largest are alike, the recording is too short for its program: a
 * little more noise than was seen is taken for granted, and little trust is put in that.
 */
#include "statistics.h"

#include <math.h>

#define BLOCKS_LEAST         ((size_t)16)
#define LEVELS_MAX           5   /* from SERIES_BLOCKS to BLOCKS_LEAST */
#define ALIKE_LIMIT          1.0 /* standard deviations of the correlation of independent blocks */
#define UNLIKE_LIMIT         (-2.0) /* of neighbours of which one has what the other lacks */
#define ALIKE_MOST           0.8    /* a correlation that is still reckoned with */
#define PHASES_FREEDOM       5.0    /* of what blocks say that are shorter than the phases */
#define SPREAD_MOST          1.0
#define SPREAD_STEPS         40
#define SPREAD_FREEDOM_LEAST 8.0 /* fewer functions cannot tell */
#define DOUBT_FREEDOM        50.0
#define ALIKE_PROBABILITY    0.5  /* of a function's own excess, from which on it is like others */
#define MEDIAN_EFFICIENCY    0.4  /* of the median against the mean, as an estimate of a variance */
#define ASYMPTOTIC_LEAST     10.0 /* from where on the series of the two functions are good */
#define FRACTION_STEPS       1000
#define FRACTION_PRECISE     1e-15
#define HALVINGS             100
#define LIMIT_MOST           1e12

/* What blocks of one size say. */
struct level {
    struct noise noise;
    double alike; /* the correlation of neighbours, in standard deviations */
    double correlation;
};

static struct level level_of(const double *blocks, size_t count)
{
    double squares = 0;
    double products = 0;
    double mean = 0;
    for (size_t i = 0; i < count; i++) {
        mean += blocks[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        squares += (blocks[i] - mean) * (blocks[i] - mean);
        products += i + 1 < count ? (blocks[i] - mean) * (blocks[i + 1] - mean) : 0;
    }
    /* Independent blocks have a correlation of -1/count, with a deviation of 1/sqrt(count). */
    double correlation = squares > 0 ? products / squares + 1 / (double)count : 0;
    return (struct level){
        .noise = {squares * (double)count / (double)(count - 1), (double)(count - 1)},
        .alike = correlation * sqrt((double)count),
        .correlation = correlation,
    };
}

/* The noise where the largest blocks are still alike: what is missing is reckoned as for a series
 * in which each block is like the one before it by that correlation. */
static struct noise noise_of_phases(const struct level *level)
{
    double correlation = fmin(level->correlation, ALIKE_MOST);
    return (struct noise){level->noise.variance * (1 + correlation) / (1 - correlation),
                          PHASES_FREEDOM};
}

struct noise noise_of_series(const double *residuals, size_t count)
{
    double blocks[SERIES_BLOCKS];
    struct level levels[LEVELS_MAX];
    size_t level_count = 0;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = residuals[i];
    }
    do {
        levels[level_count++] = level_of(blocks, count);
        count /= 2;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = blocks[2 * i] + blocks[2 * i + 1];
        }
    } while (count >= BLOCKS_LEAST && level_count < LEVELS_MAX);
    size_t chosen = level_count - 1;
    if (levels[chosen].alike >= ALIKE_LIMIT) {
        return noise_of_phases(&levels[chosen]);
    }
    while (chosen > 0 && levels[chosen - 1].alike < ALIKE_LIMIT &&
           levels[chosen - 1].alike > UNLIKE_LIMIT) {
        chosen--;
    }
    bool has_larger = chosen + 1 < level_count &&
                      levels[chosen + 1].noise.variance > levels[chosen].noise.variance;
    return levels[has_larger ? chosen + 1 : chosen].noise;
}

/* The derivatives of the logarithm of the gamma function: the first, and the second. */
static double digamma(double x)
{
    double sum = 0;
    while (x < ASYMPTOTIC_LEAST) {
        sum -= 1 / x;
        x += 1;
    }
    double square = 1 / (x * x);
    return sum + log(x) - 1 / (2 * x) -
           square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252)));
}

static double trigamma(double x)
{
    double sum = 0;
    while (x < ASYMPTOTIC_LEAST) {
        sum += 1 / (x * x);
        x += 1;
    }
    double square = 1 / (x * x);
    return sum + 1 / x + square / 2 +
           square / x * (1.0 / 6 - square * (1.0 / 30 - square * (1.0 / 42)));
}

/* Where trigamma(), which falls, has a value. */
static double trigamma_inverse(double value)
{
    double low = 1 / FREEDOM_MOST;
    double high = FREEDOM_MOST;
    for (int i = 0; i < HALVINGS && high - low > low * FRACTION_PRECISE; i++) {
        double middle = sqrt(low * high);
        *(trigamma(middle) > value ? &low : &high) = middle;
    }
    return low;
}

/* Where half of the independent estimates with that many degrees of freedom lie below, as a part of
 * what they estimate; after Wilson and Hilferty. */
static double median_of_estimates(double freedom)
{
    double root = 1 - 2 / (9 * freedom);
    return root * root * root;
}

/* How many of the contrasts are larger than their median, less those that are smaller. */
static ptrdiff_t count_surplus(const struct contrast *contrasts, size_t count, double spread)
{
    ptrdiff_t surplus = 0;
    for (size_t i = 0; i < count; i++) {
        const struct contrast *contrast = &contrasts[i];
        double expected = contrast->variance + spread * spread * contrast->scale;
        surplus += contrast->square > expected * median_of_estimates(contrast->freedom) ? 1 : -1;
    }
    return surplus;
}

struct spread spread_learn(const struct contrast *contrasts, size_t count)
{
    double freedom = 0;
    double low = 0;
    double high = SPREAD_MOST;
    for (size_t i = 0; i < count; i++) {
        freedom += contrasts[i].freedom;
    }
    if (freedom < SPREAD_FREEDOM_LEAST) {
        return (struct spread){0, 0};
    }
    if (count_surplus(contrasts, count, 0) <= 0) {
        return (struct spread){0, freedom * MEDIAN_EFFICIENCY};
    }
    for (int i = 0; i < SPREAD_STEPS; i++) {
        double middle = (low + high) / 2;
        *(count_surplus(contrasts, count, middle) > 0 ? &low : &high) = middle;
    }
    return (struct spread){high, freedom * MEDIAN_EFFICIENCY};
}

struct excess excess_learn(const double *factors, size_t count, double freedom)
{
    double sum = 0;
    double squares = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        double logarithm = factors[i] > 0 ? log(factors[i]) : 0;
        sum += logarithm;
        squares += logarithm * logarithm;
        used += factors[i] > 0;
    }
    if (used < 2 || freedom <= 0) {
        return (struct excess){1, 0};
    }
    double mean = sum / (double)used;
    double variance = (squares - sum * mean) / (double)(used - 1);
    double left = variance - trigamma(freedom / 2);
    /* Functions of one program depend on one another, so all of them say no more than half of what
     * they would say together. */
    double prior = (double)used * freedom / 2;
    if (left > 0) {
        prior = fmin(2 * trigamma_inverse(left), prior);
    }
    double logarithm =
        mean - digamma(freedom / 2) + log(freedom / 2) + digamma(prior / 2) - log(prior / 2);
    double factor = exp(logarithm);
    /* That recordings differ less than they should takes more to be believed. */
    double weight = freedom * (double)used;
    if (factor < 1) {
        factor = (weight * factor + DOUBT_FREEDOM) / (weight + DOUBT_FREEDOM);
    }
    return (struct excess){factor, prior};
}

/* The continued fraction of the incomplete beta function, by the method of Lentz. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1;
    double d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= FRACTION_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int half = 0; half < 2; half++) {
            double term = half == 0 ? even : odd;
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            result *= d * c;
        }
        if (fabs(d * c - 1) < FRACTION_PRECISE) {
            break;
        }
    }
    return result;
}

/* The regularised incomplete beta function. */
static double beta_part(double a, double b, double x)
{
    int sign = 0;
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_two_sided(double t, double freedom)
{
    return beta_part(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double excess_probability(const struct excess *learned, double factor, double freedom)
{
    return learned->freedom <= 0
               ? 1
               : beta_part(learned->freedom / 2, freedom / 2,
                           learned->freedom /
                               (learned->freedom + freedom * factor / learned->factor));
}

/* A factor that few functions have is of a function that is unlike them, so less of what was
 * learned from them holds for it: nothing, where no other has such a one. */
struct excess excess_moderate(const struct excess *learned, double factor, double freedom)
{
    double alike = fmin(1, excess_probability(learned, factor, freedom) / ALIKE_PROBABILITY);
    double prior = learned->freedom * alike;
    double all = prior + freedom;
    double own = all > 0 ? (prior * learned->factor + freedom * factor) / all : 1;
    return (struct excess){fmax(own, learned->factor), all};
}

double student_limit(double probability, double freedom)
{
    double low = 0;
    double high = 1;
    while (high < LIMIT_MOST && student_two_sided(high, freedom) > probability) {
        low = high;
        high *= 2;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(student_two_sided(middle, freedom) > probability ? &low : &high) = middle;
    }
    return high;
}

double discovery_limit(const double *sorted, size_t count, double rate)
{
    double limit = -1;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] <= rate * (double)(i + 1) / (double)count) {
            limit = sorted[i];
        }
    }
    return limit;
}
