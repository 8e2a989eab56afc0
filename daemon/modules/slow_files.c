/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Remembers files that were slow to read, in a ring. It is searched linearly, once for each file
 * that is read. A user can evict other users' entries with slow files of its own, and gains nothing
 * by it.
 */
#include "slow_files.h"

static size_t find(const struct slow_files *files, enum module_table table,
                   const struct file_identity *identity)
{
    size_t i = 0;
    while (i < SLOW_FILES_MAX &&
           (files->places[i].time_ns == 0 || files->places[i].table != table ||
            !file_identity_equal(&files->places[i].identity, identity))) {
        i++;
    }
    return i;
}

void slow_files_add(struct slow_files *files, enum module_table table,
                    const struct file_identity *identity, uint64_t time_ns)
{
    size_t at = find(files, table, identity);
    if (at == SLOW_FILES_MAX) {
        at = files->next++ % SLOW_FILES_MAX;
    }
    files->places[at] = (struct slow_file){*identity, table, time_ns};
}

uint64_t slow_files_time_ns(const struct slow_files *files, enum module_table table,
                            const struct file_identity *identity)
{
    size_t at = find(files, table, identity);
    return at == SLOW_FILES_MAX ? 0 : files->places[at].time_ns;
}
