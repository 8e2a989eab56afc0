/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes recordings as one. In an archive (tar, as POSIX has it) a file is called by its number,
 * its host and its own name, so that no two are alike and none leads out of a folder; the manifest
 * is Perfetto's, by which it puts the tracks of a file below those of its machine.
 */
#include "merge.h"

#include "cleanup.h"
#include "json_out.h"
#include "recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK_BYTES  ((size_t)512)
#define PIECE_BYTES  ((size_t)65536)
#define NAME_BYTES   ((size_t)100) /* of a file in an archive */
#define SIZE_MAX_TAR UINT64_C(077777777777)

/* Where the fields of a head are. */
enum {
    HEAD_MODE = 100,
    HEAD_OWNER = 108,
    HEAD_GROUP = 116,
    HEAD_SIZE = 124,
    HEAD_TIME = 136,
    HEAD_SUM = 148,
    HEAD_TYPE = 156,
    HEAD_MAGIC = 257,
};

static void append_plain(char *into, const char *text, size_t count_max)
{
    size_t used_bytes = strlen(into);
    for (size_t i = 0; i < count_max && text[i] != '\0' && used_bytes < NAME_BYTES - 1; i++) {
        char c = text[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        into[used_bytes++] = (char)(is_plain ? c : '_');
    }
    into[used_bytes] = '\0';
}

/* What a recording is called in the archive. `into` has NAME_BYTES. */
static void name_member(const struct merge_input *inputs, size_t number, char *into)
{
    const char *slash = strrchr(inputs[number].path, '/');
    const char *name = slash == NULL ? inputs[number].path : slash + 1;
    size_t bytes = strlen(name);
    size_t skipped = bytes > 50 ? bytes - 50 : 0; /* its ending counts */
    (void)snprintf(into, NAME_BYTES, "%zu-", number + 1);
    append_plain(into, inputs[number].host, 40);
    append_plain(into, "-", 1);
    append_plain(into, name + skipped, 50);
}

static void write_head(FILE *file, const char *name, uint64_t size_bytes)
{
    static const char magic[] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
    char head[BLOCK_BYTES] = {0};
    unsigned sum = 0;
    (void)snprintf(head, NAME_BYTES, "%s", name);
    (void)snprintf(head + HEAD_MODE, 8, "%07o", 0644U);
    (void)snprintf(head + HEAD_OWNER, 8, "%07o", 0U);
    (void)snprintf(head + HEAD_GROUP, 8, "%07o", 0U);
    (void)snprintf(head + HEAD_SIZE, 12, "%011" PRIo64, size_bytes);
    (void)snprintf(head + HEAD_TIME, 12, "%011o", 0U);
    head[HEAD_TYPE] = '0';
    memcpy(head + HEAD_MAGIC, magic, sizeof magic);
    memset(head + HEAD_SUM, ' ', 8);
    for (size_t i = 0; i < sizeof head; i++) {
        sum += (unsigned char)head[i];
    }
    (void)snprintf(head + HEAD_SUM, 8, "%06o", sum);
    (void)fwrite(head, 1, sizeof head, file);
}

static void write_padding(FILE *file, uint64_t size_bytes)
{
    static const char zeros[BLOCK_BYTES];
    (void)fwrite(zeros, 1, (BLOCK_BYTES - size_bytes % BLOCK_BYTES) % BLOCK_BYTES, file);
}

static int write_manifest(const struct merge_input *inputs, size_t count, FILE *file,
                          struct fault *reterr)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    struct json_out out = {.file = open_memstream(&text, &text_bytes)};
    if (out.file == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    json_out_begin(&out, NULL, '{');
    json_out_begin(&out, "perfetto_manifest", '{');
    json_out_u64(&out, "version", 1);
    json_out_begin(&out, "files", '[');
    for (size_t i = 0; i < count; i++) {
        char name[NAME_BYTES];
        name_member(inputs, i, name);
        json_out_begin(&out, NULL, '{');
        json_out_string(&out, "path", name);
        json_out_begin(&out, "machine", '{');
        json_out_string(&out, "name", inputs[i].host);
        json_out_end(&out, '}');
        json_out_end(&out, '}');
    }
    json_out_end(&out, ']');
    json_out_end(&out, '}');
    json_out_end(&out, '}');
    (void)fputc('\n', out.file);
    if (fclose(out.file) != 0) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    write_head(file, "perfetto_manifest.json", text_bytes);
    (void)fwrite(text, 1, text_bytes, file);
    write_padding(file, text_bytes);
    return 0;
}

static int write_member(const struct merge_input *inputs, size_t number, FILE *file,
                        struct fault *reterr)
{
    const char *path = inputs[number].path;
    cleanup_(fclosep) FILE *from = fopen(path, "re");
    struct stat status;
    char name[NAME_BYTES];
    char piece[PIECE_BYTES];
    uint64_t left_bytes = 0;
    if (from == NULL || fstat(fileno(from), &status) < 0) {
        return fault_set(reterr, errno, "%s cannot be opened: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > SIZE_MAX_TAR) {
        return fault_set(reterr, EFBIG, "%s is no regular file, or has more than 8 GiB", path);
    }
    name_member(inputs, number, name);
    left_bytes = (uint64_t)status.st_size;
    write_head(file, name, left_bytes);
    while (left_bytes > 0) {
        size_t wanted = left_bytes < sizeof piece ? (size_t)left_bytes : sizeof piece;
        size_t got = fread(piece, 1, wanted, from);
        if (got == 0) {
            return fault_set(reterr, EIO, "%s has become shorter, or cannot be read", path);
        }
        (void)fwrite(piece, 1, got, file);
        left_bytes -= got;
    }
    write_padding(file, (uint64_t)status.st_size);
    return 0;
}

int merge_write_archive(const struct merge_input *inputs, size_t count, FILE *file,
                        struct fault *reterr)
{
    static const char end[2 * BLOCK_BYTES];
    int r = write_manifest(inputs, count, file, reterr);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = write_member(inputs, i, file, reterr);
    }
    (void)fwrite(end, 1, sizeof end, file);
    return r;
}

int merge_write_recording(const struct merge_input *inputs, size_t count, FILE *file,
                          struct fault *reterr)
{
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = input_copy(inputs[i].path, inputs[i].size_bytes, file, reterr);
    }
    return r;
}
