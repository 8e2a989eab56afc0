/* SPDX-License-Identifier: Apache-2.0 */

/*
 * annotation_read_source() reads whole files and cuts them into lines. Tabs become spaces here,
 * since what prints a line knows only characters of one column.
 */
#include "annotation_source.h"

#include "cleanup.h"
#include "grow.h"
#include "regular_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SOURCE_BYTES_MAX ((size_t)16 << 20)
#define FILES_MAX        ((size_t)64) /* a function has seldom more than two */
#define TAB_WIDTH        ((size_t)8)
#define NS_PER_S         INT64_C(1000000000)

const struct annotation_file *annotation_find_file(const struct annotation *annotation,
                                                   uint32_t file)
{
    for (size_t i = 0; i < annotation->file_count; i++) {
        if (annotation->files[i].file == file) {
            return &annotation->files[i];
        }
    }
    return NULL;
}

/* Makes text of a file's bytes: tabs are spaces, and what would end it is '?'. */
static char *expand(const char *bytes, size_t size_bytes, size_t *ret_bytes)
{
    size_t tabs = 0;
    for (size_t i = 0; i < size_bytes; i++) {
        tabs += bytes[i] == '\t';
    }
    char *text = malloc(size_bytes + tabs * (TAB_WIDTH - 1) + 1);
    size_t used = 0;
    size_t column = 0;
    for (size_t i = 0; i < size_bytes && text != NULL; i++) {
        size_t spaces = bytes[i] == '\t' ? TAB_WIDTH - column % TAB_WIDTH : 0;
        memset(text + used, ' ', spaces);
        used += spaces;
        if (bytes[i] == '\r' && i + 1 < size_bytes && bytes[i + 1] == '\n') {
            continue;
        }
        if (spaces == 0) {
            text[used++] = bytes[i] == '\0' ? '?' : bytes[i];
        }
        column = bytes[i] == '\n' ? 0 : column + (spaces == 0 ? 1 : spaces);
    }
    *ret_bytes = used;
    return text;
}

/* Cuts a file's text into lines. */
static int cut_lines(struct annotation_file *file, size_t text_bytes)
{
    size_t capacity = 0;
    char *at = file->text;
    char *end = file->text + text_bytes;
    while (at < end) {
        if (grow(file->lines, capacity, file->line_count + 1) < 0) {
            return -ENOMEM;
        }
        file->lines[file->line_count++] = at;
        char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline == NULL ? end : newline + 1;
        *(newline == NULL ? end : newline) = '\0';
    }
    return 0;
}

/* Reads what a descriptor has. `*ret_bytes` is SIZE_MAX where that fails. */
static int read_bytes(int fd, size_t size_bytes, char **ret, size_t *ret_bytes)
{
    char *bytes = malloc(size_bytes + 1);
    size_t used = 0;
    ssize_t got = 1;
    while (bytes != NULL && used < size_bytes && got > 0) {
        got = read(fd, bytes + used, size_bytes - used);
        used += got > 0 ? (size_t)got : 0;
    }
    *ret = bytes;
    *ret_bytes = got < 0 ? SIZE_MAX : used;
    return bytes == NULL ? -ENOMEM : 0;
}

static bool is_newer(const struct profile *profile, const struct stat *status)
{
    int64_t offset_ns = 0;
    int64_t first_ns = 0;
    return profile_wall_offset_ns(profile, &offset_ns) &&
           !__builtin_add_overflow(profile->first_ns, offset_ns, &first_ns) &&
           status->st_mtim.tv_sec > first_ns / NS_PER_S;
}

/* Adds a file, if it can be read. */
static int add_file(const struct profile *profile, struct annotation *annotation, uint32_t name)
{
    struct stat status;
    cleanup_(freep) char *bytes = NULL;
    cleanup_(closep) int fd = regular_file_open(profile_text(profile, name));
    size_t size_bytes = 0;
    size_t text_bytes = 0;
    if (fd < 0 || fstat(fd, &status) < 0 || (uint64_t)status.st_size > SOURCE_BYTES_MAX) {
        return 0;
    }
    int r = read_bytes(fd, (size_t)status.st_size, &bytes, &size_bytes);
    if (r < 0 || size_bytes == SIZE_MAX) {
        return r;
    }
    struct annotation_file *file = &annotation->files[annotation->file_count];
    *file = (struct annotation_file){.file = name};
    file->text = expand(bytes, size_bytes, &text_bytes);
    if (file->text == NULL) {
        return -ENOMEM;
    }
    annotation->file_count++;
    annotation->has_newer_source |= is_newer(profile, &status);
    return cut_lines(file, text_bytes);
}

int annotation_read_source(const struct profile *profile, struct annotation *annotation)
{
    uint32_t last = INTERN_NONE;
    size_t asked = 0;
    annotation->files = calloc(FILES_MAX, sizeof *annotation->files);
    int r = annotation->files == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < annotation->row_count && asked < FILES_MAX && r == 0; i++) {
        uint32_t file = annotation->rows[i].file;
        if (file != last && file != INTERN_NONE) {
            r = add_file(profile, annotation, file);
            asked++;
        }
        last = file;
    }
    return r;
}
