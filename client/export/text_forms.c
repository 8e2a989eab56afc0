/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints each form into one piece of memory, and keeps a copy. What the forms take together is what
 * all texts take, and as much more as their escapes are longer.
 */
#include "text_forms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int init(struct text_forms *table, const struct profile *profile, size_t count,
                text_form_fn *print)
{
    *table = (struct text_forms){.profile = profile, .print = print, .count = count};
    table->forms = calloc(count + 1, sizeof *table->forms);
    table->memory = open_memstream(&table->printed, &table->printed_bytes);
    return table->forms == NULL || table->memory == NULL ? -ENOMEM : 0;
}

int text_forms_init(struct text_forms *table, const struct profile *profile, text_form_fn *print)
{
    return init(table, profile, profile->texts.item_count, print);
}

int text_forms_init_frames(struct text_forms *table, const struct profile *profile,
                           text_form_fn *print)
{
    return init(table, profile, profile->frames.item_count, print);
}

void text_forms_done(struct text_forms *table)
{
    for (size_t i = 0; table->forms != NULL && i < table->count; i++) {
        free(table->forms[i].text);
    }
    free(table->forms);
    if (table->memory != NULL) {
        (void)fclose(table->memory);
    }
    free(table->printed);
    *table = (struct text_forms){0};
}

static int make_form(const struct text_forms *table, uint32_t number, struct text_form *ret)
{
    rewind(table->memory);
    table->print(table->memory, table->profile, number);
    if (fflush(table->memory) != 0) {
        return -ENOMEM;
    }
    struct text_form form = {.text = malloc(table->printed_bytes + 1),
                             .text_bytes = table->printed_bytes};
    if (form.text == NULL) {
        return -ENOMEM;
    }
    memcpy(form.text, table->printed, table->printed_bytes);
    *ret = form;
    return 0;
}

const struct text_form *text_forms_get(struct text_forms *table, uint32_t number)
{
    struct text_form *form = &table->forms[number];
    return form->text == NULL && make_form(table, number, form) < 0 ? NULL : form;
}
