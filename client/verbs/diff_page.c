/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Brings a comparison and the flame graph of its recordings into one page. The page gets the same
 * sentences as the terminal, and the same object as `--json`: it has no numbers of its own.
 */
#include "diff_page.h"

#include "cleanup.h"
#include "options.h"
#include "save.h"

#include <errno.h>
#include <stdlib.h>

/* What is printed, as save_file() has it. */
struct printing {
    const struct diff *diff;
    const struct flame *flame;
    size_t limit;
};

/* Prints into memory. `*ret` is returned: free(). Returns 0, or -ENOMEM. */
static int print_text(const struct printing *printing,
                      int (*print)(FILE *file, const struct printing *printing), char **ret)
{
    size_t text_bytes = 0;
    FILE *file = open_memstream(ret, &text_bytes);
    if (file == NULL) {
        return -ENOMEM;
    }
    int r = print(file, printing);
    bool is_bad = ferror(file) != 0;
    return fclose(file) != 0 || is_bad ? -ENOMEM : r;
}

static int print_head(FILE *file, const struct printing *printing)
{
    return diff_write_head(file, printing->diff);
}

static int print_warnings(FILE *file, const struct printing *printing)
{
    diff_write_warnings(file, printing->diff);
    return 0;
}

static int print_json(FILE *file, const struct printing *printing)
{
    return diff_print_json(file, printing->diff, printing->limit);
}

static int print_page(FILE *file, void *userdata)
{
    const struct printing *printing = userdata;
    cleanup_(freep) char *head = NULL;
    cleanup_(freep) char *warnings = NULL;
    cleanup_(freep) char *json = NULL;
    if (print_text(printing, print_head, &head) < 0 ||
        print_text(printing, print_warnings, &warnings) < 0 ||
        print_text(printing, print_json, &json) < 0) {
        return -ENOMEM;
    }
    const struct flame_verdict verdict = {head, warnings, json};
    return flamegraph_print_difference(file, printing->flame, &verdict, FLAME_BY_COMMAND);
}

int diff_page_save(const char *path, const struct diff *diff, const struct flame *flame,
                   size_t limit)
{
    struct printing printing = {diff, flame, limit};
    return save_file(path, false, print_page, &printing);
}
