/* SPDX-License-Identifier: Apache-2.0 */

/*
 * annotation_read_source() reads files line by line and keeps only the lines that are shown, within
 * limits for all files together. The files with the most samples come first. Tabs become spaces
 * here, since what prints a line knows only characters of one column.
 */
#include "annotation_source.h"

#include "cleanup.h"
#include "compare.h"
#include "grow.h"
#include "regular_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX        ((size_t)64) /* a function has seldom more than two */
#define SOURCE_BYTES_MAX ((size_t)ANNOTATION_SOURCE_MIB_MAX << 20)
#define READ_BYTES_MAX   ((size_t)64 << 20) /* of all files */
#define KEPT_BYTES_MAX   ((size_t)8 << 20)  /* of all files' lines, with what each takes besides */
#define LINE_BYTES_MAX   ((size_t)4 << 10)  /* the rest of a longer line is not kept */
#define KEPT_LINE_BYTES  (sizeof(struct annotation_text) + 2 * sizeof(size_t))
#define TAB_WIDTH        ((size_t)8)
#define NS_PER_S         INT64_C(1000000000)

/* The rows of a file. */
struct group {
    uint32_t file;
    uint64_t total;
    size_t first_row;
    size_t row_count;
};

/* A file being read. */
struct source {
    FILE *file;
    const struct annotation_row *rows; /* those that are not behind the line at hand */
    size_t row_count;
    uint64_t line; /* the number of the line at hand */
    size_t column;
    size_t used;
    char text[LINE_BYTES_MAX + 1];
};

/* What all files together may still take. */
struct allowance {
    size_t read_bytes;
    size_t kept_bytes;
};

static int compare_texts(const void *left, const void *right)
{
    const struct annotation_text *a = left;
    const struct annotation_text *b = right;
    return compare_u64(a->line, b->line);
}

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

const char *annotation_find_text(const struct annotation_file *file, uint64_t line)
{
    const struct annotation_text wanted = {.line = line};
    const struct annotation_text *found =
        file == NULL || file->text_count == 0
            ? NULL
            : bsearch(&wanted, file->texts, file->text_count, sizeof *file->texts, compare_texts);
    return found == NULL ? NULL : found->text;
}

/* Whether the line at hand is shown. */
static bool is_shown(const struct source *source)
{
    return source->row_count > 0 && source->line + ANNOTATION_AROUND >= source->rows->line;
}

/* Adds a byte to the line at hand, or the spaces of a tab; a NUL would end the text. */
static void put_byte(struct source *source, char byte)
{
    size_t width = byte == '\t' ? TAB_WIDTH - source->column % TAB_WIDTH : 1;
    source->column += width;
    for (; width > 0 && source->used < LINE_BYTES_MAX; width--) {
        source->text[source->used++] = byte == '\t' ? ' ' : byte == '\0' ? '?' : byte;
    }
}

/* Keeps the line at hand if it is shown and there is room, and goes on to the next. */
static int end_line(struct source *source, struct annotation_file *file,
                    struct allowance *allowance)
{
    size_t kept_bytes = source->used + 1 + KEPT_LINE_BYTES;
    if (is_shown(source) && kept_bytes <= allowance->kept_bytes) {
        if (grow(file->texts, file->text_capacity, file->text_count + 1) < 0) {
            return -ENOMEM;
        }
        char *text = strndup(source->text, source->used);
        if (text == NULL) {
            return -ENOMEM;
        }
        file->texts[file->text_count++] = (struct annotation_text){source->line, text};
        allowance->kept_bytes -= kept_bytes;
    }
    source->line++;
    source->column = 0;
    source->used = 0;
    while (source->row_count > 0 && source->rows->line + ANNOTATION_AROUND < source->line) {
        source->rows++;
        source->row_count--;
    }
    return 0;
}

/* Reads up to the last line that is shown. */
static int read_lines(struct source *source, struct annotation_file *file,
                      struct allowance *allowance)
{
    size_t left = SOURCE_BYTES_MAX;
    bool has_return = false; /* a '\r' that the line does not have yet: before '\n' it is no text */
    bool is_begun = false;
    int r = 0;
    while (r == 0 && source->row_count > 0 && left > 0 && allowance->read_bytes > 0) {
        int byte = getc_unlocked(source->file);
        if (byte == EOF) {
            break;
        }
        left--;
        allowance->read_bytes--;
        if (has_return && byte != '\n') {
            put_byte(source, '\r');
        }
        has_return = byte == '\r';
        is_begun = byte != '\n';
        if (byte == '\n') {
            r = end_line(source, file, allowance);
        } else if (!has_return && is_shown(source)) {
            put_byte(source, (char)byte);
        }
    }
    return r == 0 && is_begun ? end_line(source, file, allowance) : r;
}

static bool is_newer(const struct profile *profile, const struct stat *status)
{
    int64_t offset_ns = 0;
    int64_t first_ns = 0;
    return profile_wall_offset_ns(profile, &offset_ns) &&
           !__builtin_add_overflow(profile->first_ns, offset_ns, &first_ns) &&
           status->st_mtim.tv_sec > first_ns / NS_PER_S;
}

/* Reads the lines of a file, if it can be read. */
static int read_file(const struct profile *profile, struct annotation *annotation,
                     const struct group *group, struct allowance *allowance)
{
    struct stat status;
    struct annotation_file *file = &annotation->files[annotation->file_count++];
    *file = (struct annotation_file){.file = group->file, .error = -EFBIG};
    int fd = regular_file_open(profile_text(profile, group->file));
    cleanup_(fclosep) FILE *stream = fd < 0 ? NULL : fdopen(fd, "re");
    if (fd >= 0 && stream == NULL) {
        close_fd(fd);
        return -ENOMEM;
    }
    if (stream == NULL || fstat(fd, &status) < 0) {
        file->error = fd < 0 ? fd : -errno;
        return 0;
    }
    if ((uint64_t)status.st_size > SOURCE_BYTES_MAX || allowance->read_bytes == 0) {
        return 0;
    }
    cleanup_(freep) struct source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return -ENOMEM;
    }
    source->file = stream;
    source->line = 1;
    source->rows = &annotation->rows[group->first_row];
    source->row_count = group->row_count;
    int r = read_lines(source, file, allowance);
    file->error = ferror(stream) == 0 ? 0 : -EIO;
    annotation->has_newer_source |= file->error == 0 && is_newer(profile, &status);
    return r;
}

static int compare_groups(const void *left, const void *right)
{
    const struct group *a = left;
    const struct group *b = right;
    int r = compare_u64(b->total, a->total);
    return r == 0 ? compare_u64(a->first_row, b->first_row) : r;
}

/* The files of the rows, the one with the most samples first. Returned: free(); NULL when there is
 * no memory. */
static struct group *find_groups(const struct annotation *annotation, size_t *ret_count)
{
    struct group *groups = calloc(annotation->row_count + 1, sizeof *groups);
    size_t count = 0;
    for (size_t i = 0; i < annotation->row_count && groups != NULL; i++) {
        const struct annotation_row *row = &annotation->rows[i];
        if (row->file == INTERN_NONE) {
            continue;
        }
        if (count == 0 || groups[count - 1].file != row->file) {
            groups[count++] = (struct group){.file = row->file, .first_row = i};
        }
        groups[count - 1].total += row->total;
        groups[count - 1].row_count++;
    }
    if (count > 0) {
        qsort(groups, count, sizeof *groups, compare_groups);
    }
    *ret_count = count;
    return groups;
}

int annotation_read_source(const struct profile *profile, struct annotation *annotation)
{
    struct allowance allowance = {READ_BYTES_MAX, KEPT_BYTES_MAX};
    size_t count = 0;
    cleanup_(freep) struct group *groups = find_groups(annotation, &count);
    annotation->files = calloc(FILES_MAX, sizeof *annotation->files);
    int r = groups == NULL || annotation->files == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < count && i < FILES_MAX && r == 0; i++) {
        r = read_file(profile, annotation, &groups[i], &allowance);
    }
    return r;
}
