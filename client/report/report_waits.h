/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report.h"

/* Whether waits were too many to have a sample each. Without books that is not known: true. */
bool report_waits_are_sampled(const struct profile *profile);

/* What a reader of the columns must know, below the first `shown` rows; mostly nothing. */
void report_waits_print(const struct page *page, const struct profile *profile,
                        const struct report *report, size_t shown);
