/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fxt_reader.h"

#include <stdio.h>

/*
 * One record on a line: for a person, or as a JSON object. A Data blob of JSON is a line for each
 * of its lines. As JSON, a magic number is a "segment", which begins there, and records that only
 * serve the others (providers, strings) are left out; addresses and continuation ids are texts
 * ("0x1f"), which no reader rounds.
 */
void dump_print_text(FILE *file, const struct fxt_record *record);
void dump_print_json(FILE *file, const struct fxt_record *record);
