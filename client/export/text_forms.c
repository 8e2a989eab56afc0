/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints each text into memory. What the forms take together is what all texts take, and as much
 * more as their escapes are longer.
 */
#include "text_forms.h"

#include <errno.h>
#include <stdlib.h>

int text_forms_init(struct text_forms *table, const struct profile *profile,
                    void (*print)(FILE *file, const char *text))
{
    *table = (struct text_forms){.profile = profile, .print = print};
    table->forms = calloc(profile->texts.item_count + 1, sizeof *table->forms);
    return table->forms == NULL ? -ENOMEM : 0;
}

void text_forms_done(struct text_forms *table)
{
    for (size_t i = 0; table->forms != NULL && i < table->profile->texts.item_count; i++) {
        free(table->forms[i].text);
    }
    free(table->forms);
    *table = (struct text_forms){0};
}

static int make_form(const struct text_forms *table, uint32_t text, struct text_form *ret)
{
    struct text_form form = {0};
    FILE *file = open_memstream(&form.text, &form.text_bytes);
    if (file == NULL) {
        return -ENOMEM;
    }
    table->print(file, profile_text(table->profile, text));
    if (fclose(file) != 0) {
        free(form.text);
        return -ENOMEM;
    }
    *ret = form;
    return 0;
}

const struct text_form *text_forms_get(struct text_forms *table, uint32_t text)
{
    struct text_form *form = &table->forms[text];
    return form->text == NULL && make_form(table, text, form) < 0 ? NULL : form;
}
