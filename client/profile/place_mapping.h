/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "mappings.h"
#include "places.h"

/* The address of the instruction that a place stands for. */
uint64_t place_instruction(const struct stack_place *place);

/* The mapping of a known module that a place lies in, or NULL. Borrowed. */
const struct mapping *place_mapping(const struct profile *profile,
                                    const struct profile_sample *sample,
                                    const struct stack_place *place);
