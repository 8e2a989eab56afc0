/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How sure a difference of two sums of samples is. Samples that follow one another are much alike,
 * so nothing here takes them for independent: the noise of a sum is read from the sums of blocks of
 * time, which are as long as they have to be. All is arithmetic on arrays, without memory of its
 * own.
 */

#include <stdbool.h>
#include <stddef.h>

/* Blocks that a recording is divided into at most; a power of two. */
#define SERIES_BLOCKS ((size_t)256)

/* As good as exact. */
#define FREEDOM_MOST 1e6

/* How far a sum would be elsewhere, were it taken again. */
struct noise {
    double variance; /* of the sum, in samples squared */
    double freedom;  /* degrees of freedom of that estimate; 0: there is none */
};

/*
 * The noise of the sum of a series: of each block of time what it has more than its part, so that
 * all together are 0. `count` is a power of two, at most SERIES_BLOCKS. By the blocking method of
 * Flyvbjerg and Petersen: blocks are joined by twos until neighbours say nothing of one another.
 */
struct noise noise_of_series(const double *residuals, size_t count);

/* An estimate of a variance that should be `variance` and, for each square of the relative spread
 * between runs, `scale` more. */
struct contrast {
    double square;  /* the estimate */
    double freedom; /* its degrees of freedom */
    double variance;
    double scale;
};

/* How much the same function of the same program differs from one run to the next, as a part of
 * it: by where its memory lies, by what else the machine does. */
struct spread {
    double part;
    double freedom; /* 0: too few functions to tell */
};

/* The spread with which half of the contrasts are larger than half of such estimates are: a few
 * functions that did change do not matter. */
struct spread spread_learn(const struct contrast *contrasts, size_t count);

/*
 * How many times larger the noise between recordings is than the one within them, learned from all
 * functions: single ones have few recordings to tell it by.
 */
struct excess {
    double factor;  /* what functions have mostly */
    double freedom; /* how much that says of a single one; 0: nothing was learned */
};

/*
 * `factors` are of functions, each estimated with `freedom` degrees; values that are not above 0
 * are left out. After Smyth's empirical Bayes for the variances of many genes.
 */
struct excess excess_learn(const double *factors, size_t count, double freedom);

/* What a function's own factor becomes beside what was learned, and its degrees of freedom. It is
 * not below what was learned: a few recordings are alike by chance. */
struct excess excess_moderate(const struct excess *learned, double factor, double freedom);

/* The probability that a function's own factor is that large or larger, if it is as what was
 * learned says. */
double excess_probability(const struct excess *learned, double factor, double freedom);

/* The probability that |t| is that large or larger, of Student's distribution. */
double student_two_sided(double t, double freedom);

/* The t that is exceeded with that probability, to both sides; of a probability from 0 to 1. */
double student_limit(double probability, double freedom);

/*
 * The largest of the probabilities (which are sorted) that is accepted, so that among all accepted
 * ones at most a part of `rate` is false, after Benjamini and Hochberg; -1: none is.
 */
double discovery_limit(const double *sorted, size_t count, double rate);
