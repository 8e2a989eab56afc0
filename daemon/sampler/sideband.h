/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sideband records of all CPUs, put into the order of their time: copies wait here from the moment
 * their ring is drained until the horizon passes them. Bounded. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sideband;

/* Returned; NULL when there is no memory. */
struct sideband *sideband_new(void);
struct sideband *sideband_free(struct sideband *sideband);

/* Copies one record. False, and it is not queued, when there is no room or no memory for it beside
 * those that wait. */
bool sideband_add(struct sideband *sideband, uint64_t time_ns, const uint8_t *record,
                  size_t size_bytes);

/*
 * Call after the last sideband_add() of a drain, then sideband_next() until it gives NULL: the
 * records up to and with `horizon_ns`, oldest first (equal times in the order in which they were
 * added), each 8-byte aligned and borrowed until the next sideband_add() or sideband_sort().
 */
void sideband_sort(struct sideband *sideband);
/* The time of the record that sideband_next() would give, UINT64_MAX without one. */
uint64_t sideband_next_ns(const struct sideband *sideband);
const uint8_t *sideband_next(struct sideband *sideband, uint64_t horizon_ns,
                             size_t *ret_size_bytes);
/* How many records wait. */
size_t sideband_count(const struct sideband *sideband);
