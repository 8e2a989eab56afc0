/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the records of a jitdump. A record begins with its kind, length and time. Code bytes, line
 * numbers and unwind tables are skipped. An incomplete record ends the reading, and so does one
 * with an impossible length, since the place of the next record is not known.
 *
 * Code that is moved keeps the name that its old place had when it moved, and its old place has no
 * name from then on. So moves are followed in the order of the file, by the addresses.
 */
#include "jitdump.h"

#include "array.h"
#include "perf_map.h"
#include "seeded_hash.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC            UINT32_C(0x4a695444)
#define VERSION          1
#define FLAG_ARCH_TIME   UINT64_C(1)
#define RECORD_LOAD      0
#define RECORD_MOVE      1
#define VADDR_ALIGN      UINT64_C(16)
#define WINDOW_BYTES     ((size_t)65536)
#define RECORD_SLICE_MAX (sizeof(struct load) + JITDUMP_NAME_BYTES_MAX + 1)

struct file_header {
    uint32_t magic;
    uint32_t version;
    uint32_t total_size;
    uint32_t machine;
    uint32_t pad;
    uint32_t pid;
    uint64_t time_ns;
    uint64_t flags;
};

struct record {
    uint32_t kind;
    uint32_t total_size;
    uint64_t time_ns;
};

struct load {
    struct record record;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
};

struct move {
    struct record record;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t old_start;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t index;
};

_Static_assert(sizeof(struct file_header) == 40 && sizeof(struct record) == 16 &&
                   sizeof(struct load) == 56 && sizeof(struct move) == 64,
               "as they are in the file");

/* Bytes to read: of a file, by windows, or in memory. */
struct source {
    int fd; /* borrowed; -1: in memory */
    const char *bytes;
    size_t size_bytes;
    char *window; /* owned */
    size_t window_at;
    size_t window_bytes;
};

struct function {
    uint64_t index;
    uint64_t start;
    uint64_t size_bytes;
    uint64_t vaddr;
};

struct dump {
    struct source source;
    struct symbol_builder *builder; /* borrowed */
    struct code_claim *claims;      /* owned, as the next */
    size_t claim_count;
    size_t claim_capacity;
    struct function *functions; /* by index: a hash table of a power of two; index + 1, 0: free */
    size_t function_count;
    size_t function_capacity;
    uint64_t next_vaddr;
    struct perf_map_state state;
};

/* Gives up to `bytes` (at most WINDOW_BYTES) of the source from `at` on, as many as there are; they
 * stay until the next call. -errno. */
static ssize_t look(struct source *source, size_t at, size_t bytes, const char **ret)
{
    size_t left = at < source->size_bytes ? source->size_bytes - at : 0;
    bytes = bytes < left ? bytes : left;
    if (source->fd < 0) {
        *ret = source->bytes + (left > 0 ? at : 0);
        return (ssize_t)bytes;
    }
    if (at < source->window_at || at + bytes > source->window_at + source->window_bytes) {
        size_t used = 0;
        size_t wanted = left < WINDOW_BYTES ? left : WINDOW_BYTES;
        while (used < wanted) {
            ssize_t got =
                pread(source->fd, source->window + used, wanted - used, (off_t)(at + used));
            if (got < 0) {
                return -errno;
            }
            if (got == 0) {
                break;
            }
            used += (size_t)got;
        }
        source->window_at = at;
        source->window_bytes = used;
        bytes = bytes < used ? bytes : used;
    }
    *ret = source->window + (at - source->window_at);
    return (ssize_t)bytes;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const char *at = bytes;
    while (size_bytes > 0) {
        uint64_t word = 0;
        size_t taken = size_bytes < sizeof word ? size_bytes : sizeof word;
        memcpy(&word, at, taken);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        at += taken;
        size_bytes -= taken;
    }
    return hash;
}

static int add_claim(struct dump *dump, uint64_t time_ns, uint64_t start, uint64_t size_bytes,
                     uint64_t vaddr)
{
    void *claims = dump->claims;
    int r = array_grow(&claims, &dump->claim_capacity, dump->claim_count + 1, sizeof *dump->claims);
    if (r == 0) {
        dump->claims = claims;
        dump->claims[dump->claim_count] = (struct code_claim){.time_ns = time_ns,
                                                              .start = start,
                                                              .end = start + size_bytes,
                                                              .vaddr = vaddr,
                                                              .order = (uint32_t)dump->claim_count};
        dump->claim_count++;
    }
    return r;
}

/* The runtime chooses the index, so the hash is seeded. */
static struct function *find_function(struct function *functions, size_t capacity, uint64_t index)
{
    size_t at = seeded_hash_pair(index, 0) & (capacity - 1);
    while (functions[at].vaddr != 0 && functions[at].index != index) {
        at = (at + 1) & (capacity - 1);
    }
    return &functions[at];
}

/* Where a function of that index was made or moved to last. */
static int remember(struct dump *dump, const struct function *function)
{
    if (dump->function_count * 2 >= dump->function_capacity) {
        size_t capacity = dump->function_capacity == 0 ? 1024 : dump->function_capacity * 2;
        struct function *functions = calloc(capacity, sizeof *functions);
        if (functions == NULL) {
            return -ENOMEM;
        }
        for (size_t i = 0; i < dump->function_capacity; i++) {
            if (dump->functions[i].vaddr != 0) {
                *find_function(functions, capacity, dump->functions[i].index) = dump->functions[i];
            }
        }
        free(dump->functions);
        dump->functions = functions;
        dump->function_capacity = capacity;
    }
    struct function *place =
        find_function(dump->functions, dump->function_capacity, function->index);
    dump->function_count += place->vaddr == 0 ? 1 : 0;
    *place = *function;
    return 0;
}

static bool is_range(uint64_t start, uint64_t size_bytes)
{
    return size_bytes > 0 && size_bytes <= UINT32_MAX && start <= JITDUMP_VADDR - size_bytes;
}

static int take_load(struct dump *dump, const char *bytes, size_t size_bytes)
{
    struct load load;
    memcpy(&load, bytes, sizeof load);
    const char *name = bytes + sizeof load;
    size_t name_bytes = strnlen(name, size_bytes - sizeof load);
    if (!is_range(load.start, load.size_bytes) || name_bytes == 0) {
        return 0;
    }
    char text[JITDUMP_NAME_BYTES_MAX + 1];
    name_bytes = name_bytes < sizeof text ? name_bytes : sizeof text - 1;
    memcpy(text, name, name_bytes);
    text[name_bytes] = '\0';
    const struct function function = {load.index, load.start, load.size_bytes, dump->next_vaddr};
    dump->next_vaddr += (load.size_bytes + VADDR_ALIGN - 1) / VADDR_ALIGN * VADDR_ALIGN;
    int r = symbol_builder_add(dump->builder, function.vaddr, load.size_bytes, 0, text);
    if (r == 0) {
        r = remember(dump, &function);
    }
    return r == 0
               ? add_claim(dump, load.record.time_ns, load.start, load.size_bytes, function.vaddr)
               : r;
}

static int take_move(struct dump *dump, const char *bytes)
{
    struct move move;
    memcpy(&move, bytes, sizeof move);
    if (!is_range(move.start, move.size_bytes) || !is_range(move.old_start, move.size_bytes)) {
        return 0;
    }
    struct function function = {.index = move.index};
    if (dump->function_capacity > 0) {
        function = *find_function(dump->functions, dump->function_capacity, move.index);
    }
    bool is_known = function.vaddr != 0 && function.start == move.old_start &&
                    function.size_bytes == move.size_bytes;
    int r = add_claim(dump, move.record.time_ns, move.old_start, move.size_bytes, 0);
    if (r == 0) {
        r = add_claim(dump, move.record.time_ns, move.start, move.size_bytes,
                      is_known ? function.vaddr : 0);
    }
    function.start = move.start;
    return r == 0 && is_known ? remember(dump, &function) : r;
}

/* Of a whole record, its beginning. */
static int take_record(struct dump *dump, const struct record *record, const char *bytes,
                       size_t size_bytes)
{
    if (record->kind == RECORD_LOAD && size_bytes > sizeof(struct load)) {
        return take_load(dump, bytes, size_bytes);
    }
    if (record->kind == RECORD_MOVE && size_bytes >= sizeof(struct move)) {
        return take_move(dump, bytes);
    }
    return 0;
}

/* Goes through the whole records from `at` on. */
static int take_records(struct dump *dump, size_t at, size_t known_bytes)
{
    struct perf_map_state *state = &dump->state;
    for (size_t count = 0;; count++) {
        const char *bytes = NULL;
        struct record record;
        state->text_bytes = at;
        if (at == known_bytes) {
            state->known_bytes = known_bytes;
            state->known_hash = state->text_hash;
        }
        ssize_t got = look(&dump->source, at, RECORD_SLICE_MAX, &bytes);
        if (got < (ssize_t)sizeof record || bytes == NULL) {
            return got < 0 ? (int)got : 0;
        }
        memcpy(&record, bytes, sizeof record);
        if (record.total_size < sizeof record || record.total_size > dump->source.size_bytes - at) {
            return 0;
        }
        if (count == JITDUMP_RECORDS_MAX) {
            return -E2BIG;
        }
        size_t size_bytes = record.total_size < (size_t)got ? record.total_size : (size_t)got;
        state->text_hash =
            hash_bytes(state->text_hash, bytes,
                       size_bytes < sizeof(struct load) ? size_bytes : sizeof(struct load));
        int r = take_record(dump, &record, bytes, size_bytes);
        if (r < 0) {
            return r;
        }
        at += record.total_size;
    }
}

static int take_header(struct dump *dump, size_t *ret_bytes)
{
    const char *bytes = NULL;
    struct file_header header;
    ssize_t got = look(&dump->source, 0, sizeof header, &bytes);
    *ret_bytes = sizeof header;
    if (got < (ssize_t)sizeof header || bytes == NULL) {
        return got < 0 ? (int)got : 0; /* the runtime has not written it yet */
    }
    memcpy(&header, bytes, sizeof header);
    if (header.magic != MAGIC || header.version != VERSION || header.machine != EM_X86_64 ||
        header.total_size < sizeof header) {
        return -EBADMSG;
    }
    if ((header.flags & FLAG_ARCH_TIME) != 0) {
        return -ENOTSUP;
    }
    *ret_bytes = header.total_size;
    return 0;
}

static int parse(struct dump *dump, size_t known_bytes, void **ret_spans, size_t *ret_spans_bytes)
{
    size_t header_bytes = 0;
    dump->next_vaddr = JITDUMP_VADDR;
    int r = take_header(dump, &header_bytes);
    if (r == 0 && dump->source.size_bytes >= header_bytes) {
        r = take_records(dump, header_bytes, known_bytes);
    }
    if (r == 0) {
        r = symbol_builder_build_id(dump->builder, (const uint8_t *)&dump->state,
                                    sizeof dump->state);
    }
    if (r == 0) {
        r = code_spans_build(dump->claims, dump->claim_count, ret_spans, ret_spans_bytes);
    }
    free(dump->claims);
    free(dump->functions);
    return r;
}

int jitdump_parse(const void *bytes, size_t size_bytes, size_t known_bytes,
                  struct symbol_builder *builder, void **ret_spans, size_t *ret_spans_bytes)
{
    struct dump dump = {.source = {.fd = -1, .bytes = bytes, .size_bytes = size_bytes},
                        .builder = builder};
    return parse(&dump, known_bytes, ret_spans, ret_spans_bytes);
}

int jitdump_read(int fd, size_t known_bytes, struct symbol_builder *builder, void **ret_spans,
                 size_t *ret_spans_bytes)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    if (status.st_size < 0 || (uint64_t)status.st_size > JITDUMP_BYTES_MAX) {
        return -E2BIG;
    }
    struct dump dump = {
        .source = {.fd = fd, .size_bytes = (size_t)status.st_size, .window = malloc(WINDOW_BYTES)},
        .builder = builder};
    if (dump.source.window == NULL) {
        return -ENOMEM;
    }
    symbol_builder_limit(builder, dump.source.size_bytes);
    int r = parse(&dump, known_bytes, ret_spans, ret_spans_bytes);
    free(dump.source.window);
    return r;
}
