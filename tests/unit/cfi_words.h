/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A rule in one line, so that tables of expectations can be read. The CFA first: "r7+16",
 * "[r6-8]+8", "[r7+8+8*r9]+8", "plt r7+8 11"; then where the return address, rbp and rbx are, "c"
 * for the CFA, "s" for rsp, "b" for rbp, "=" for the same value, "?" for nowhere; then "signal".
 */

#include "cfi_table.h"

#include <stdio.h>

#define CFI_WORDS_BYTES 160
#define ENTRY           "r7+8 ra c-8 bp = bx =" /* where a function begins */

/* Bytes of a row, and how many: two members. */
#define BYTES(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

static inline const char *cfi_saved_words(uint8_t saved, int32_t offset, char words[24])
{
    static const char from[] = {'=', 'c', 's', 'b', '?'};
    if (saved == CFI_SAME || saved == CFI_LOST) {
        (void)snprintf(words, 24, "%c", from[saved]);
    } else {
        (void)snprintf(words, 24, "%c%+d", from[saved], offset);
    }
    return words;
}

static inline void cfi_cfa_words(const struct cfi_rule *rule, char words[64])
{
    switch ((enum cfi_kind)rule->kind) {
    case CFI_NONE:
    case CFI_UNSUPPORTED:
    case CFI_ROOT:
    case CFI_END:
        break;
    case CFI_OFFSET:
        (void)snprintf(words, 64, "r%u%+d", rule->cfa_register, rule->cfa_offset);
        break;
    case CFI_DEREF:
        (void)snprintf(words, 64, "[r%u%+d]%+d", rule->cfa_register, rule->cfa_offset,
                       rule->cfa_addend);
        break;
    case CFI_DEREF_INDEX:
        (void)snprintf(words, 64, "[r%u%+d+8*r%u]%+d", rule->cfa_register, rule->cfa_offset,
                       rule->cfa_index, rule->cfa_addend);
        break;
    case CFI_PLT:
        (void)snprintf(words, 64, "plt r%u%+d %d", rule->cfa_register, rule->cfa_offset,
                       rule->cfa_addend);
        break;
    case CFI_FORK:
        (void)snprintf(words, 64, "fork r%u%+d", rule->cfa_register, rule->cfa_offset);
        break;
    case CFI_SWITCH:
        (void)snprintf(words, 64, "switch r%u%+d", rule->cfa_register, rule->cfa_offset);
        break;
    }
}

static inline const char *cfi_words(const struct cfi_rule *rule, char words[CFI_WORDS_BYTES])
{
    static const char *const plain[] = {"none", "unsupported", "root"};
    char cfa[64];
    char ra[24];
    char bp[24];
    char bx[24];
    if (rule->kind <= CFI_ROOT || rule->kind == CFI_END) {
        (void)snprintf(words, CFI_WORDS_BYTES, "%s",
                       rule->kind == CFI_END ? "end" : plain[rule->kind]);
        return words;
    }
    cfi_cfa_words(rule, cfa);
    (void)snprintf(words, CFI_WORDS_BYTES, "%s ra %s bp %s bx %s%s%s", cfa,
                   cfi_saved_words(rule->ra_saved, rule->ra_offset, ra),
                   cfi_saved_words(rule->bp_saved, rule->bp_offset, bp),
                   cfi_saved_words(rule->bx_saved, rule->bx_offset, bx),
                   rule->signal_frame ? " signal" : "", rule->keeps_fp ? " fp" : "");
    return words;
}
