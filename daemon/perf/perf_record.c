/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses kernel records. A record is a header, a body whose layout depends on its type and the
 * event's sample_type, and, unless it is a sample, a trailer with the ids (sample_id_all). The
 * trailer is at the record's end, and the body must fit before it. Invariant: each byte is read
 * through a cursor that cannot leave the record, so a view never points outside of it.
 *
 * The words of a user callchain are what the program had on its stack: the kernel copies return
 * addresses unchecked. So a word that looks like a context marker is one only before the user part;
 * inside of the user part it ends the chain.
 */
#include "perf_record.h"

#include "perf_abi.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* A word each, in the order in which a sample has them. */
static const uint64_t sample_words[] = {
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
    PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

/* The same in the trailer of all other records. */
static const uint64_t trailer_words[] = {
    PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
    PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,  PERF_SAMPLE_IDENTIFIER,
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#define TRAILER_BITS                                                                               \
    ((uint64_t)(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |      \
                PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER))

#define LAYOUT_BITS                                                                                \
    (TRAILER_BITS | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |    \
     PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP)

struct cursor {
    const uint8_t *at;
    size_t left_bytes;
};

/* The next `size_bytes`, or NULL when there are not as many. */
static const uint8_t *take(struct cursor *cursor, uint64_t size_bytes)
{
    const uint8_t *taken = cursor->at;
    if (size_bytes > cursor->left_bytes) {
        return NULL;
    }
    cursor->at += size_bytes;
    cursor->left_bytes -= (size_t)size_bytes;
    return taken;
}

static bool take_u64(struct cursor *cursor, uint64_t *ret)
{
    const uint8_t *bytes = take(cursor, sizeof *ret);
    if (bytes == NULL) {
        return false;
    }
    memcpy(ret, bytes, sizeof *ret);
    return true;
}

static bool take_u32(struct cursor *cursor, uint32_t *ret)
{
    const uint8_t *bytes = take(cursor, sizeof *ret);
    if (bytes == NULL) {
        return false;
    }
    memcpy(ret, bytes, sizeof *ret);
    return true;
}

static bool take_pid(struct cursor *cursor, int32_t *ret)
{
    uint32_t pid;
    if (!take_u32(cursor, &pid)) {
        return false;
    }
    *ret = (int32_t)pid;
    return true;
}

/* `count` words where they lie; NULL when there are not as many. */
static const uint64_t *take_words(struct cursor *cursor, uint64_t count)
{
    if (count > cursor->left_bytes / sizeof(uint64_t)) {
        return NULL;
    }
    return (const uint64_t *)(const void *)take(cursor, count * sizeof(uint64_t));
}

/* The rest of the body as a string, or NULL when it does not end in it. */
static const char *take_string(struct cursor *cursor)
{
    const char *text = (const char *)cursor->at;
    return memchr(text, '\0', cursor->left_bytes) != NULL ? text : NULL;
}

struct perf_record_layout perf_record_layout_make(uint64_t sample_type, uint64_t user_regs_mask)
{
    assert((sample_type & ~LAYOUT_BITS) == 0);
    return (struct perf_record_layout){
        .sample_type = sample_type,
        .user_regs_mask = user_regs_mask,
    };
}

static bool take_id_words(uint64_t sample_type, const uint64_t *order, size_t order_count,
                          struct cursor *cursor, struct perf_record *ret)
{
    for (size_t i = 0; i < order_count; i++) {
        uint64_t bit = sample_type & order[i];
        uint64_t word;
        if (bit == 0) {
            continue;
        }
        if (!take_u64(cursor, &word)) {
            return false;
        }
        if (bit == PERF_SAMPLE_IDENTIFIER || bit == PERF_SAMPLE_ID) {
            ret->event_id = word;
        } else if (bit == PERF_SAMPLE_TID) {
            ret->pid = (int32_t)(uint32_t)word;
            ret->tid = (int32_t)(uint32_t)(word >> 32);
        } else if (bit == PERF_SAMPLE_TIME) {
            ret->time_ns = word;
        } else if (bit == PERF_SAMPLE_CPU) {
            ret->cpu = (uint32_t)word;
        }
    }
    return true;
}

static bool is_marker(uint64_t word)
{
    return word >= PERF_CONTEXT_MAX;
}

/* Finds the kernel and the user part. False when a marker lacks what must follow it. */
static bool split_chain(const uint64_t *chain, size_t count, struct perf_sample_view *ret)
{
    for (size_t i = 0; i < count;) {
        uint64_t marker = chain[i++];
        const uint64_t *run = chain + i;
        if (marker == PERF_CONTEXT_USER_DEFERRED) {
            ret->deferred = i < count;
            ret->deferred_cookie = ret->deferred ? run[0] : 0;
            return ret->deferred;
        }
        while (i < count && !is_marker(chain[i])) {
            i++;
        }
        size_t run_count = (size_t)(chain + i - run);
        if (marker == PERF_CONTEXT_USER) {
            ret->user_chain = run;
            ret->user_count = run_count;
            return true;
        }
        if (marker == PERF_CONTEXT_KERNEL && ret->kernel_chain == NULL) {
            ret->kernel_chain = run;
            ret->kernel_count = run_count;
        }
    }
    return true;
}

static bool take_chain(struct cursor *cursor, struct perf_sample_view *ret)
{
    uint64_t count;
    if (!take_u64(cursor, &count)) {
        return false;
    }
    const uint64_t *chain = take_words(cursor, count);
    return chain != NULL && split_chain(chain, (size_t)count, ret);
}

static bool take_user_regs(uint64_t mask, struct cursor *cursor, struct perf_sample_view *ret)
{
    if (!take_u64(cursor, &ret->user_regs_abi)) {
        return false;
    }
    if (ret->user_regs_abi == PERF_SAMPLE_REGS_ABI_NONE) {
        return true;
    }
    ret->user_regs_count = (size_t)__builtin_popcountll(mask);
    ret->user_regs = take_words(cursor, ret->user_regs_count);
    ret->has_user_regs = ret->user_regs != NULL;
    return ret->has_user_regs;
}

static bool take_user_stack(struct cursor *cursor, struct perf_sample_view *ret)
{
    uint64_t reserved_bytes;
    uint64_t valid_bytes;
    if (!take_u64(cursor, &reserved_bytes)) {
        return false;
    }
    if (reserved_bytes == 0) {
        return true;
    }
    const uint8_t *stack = take(cursor, reserved_bytes);
    if (stack == NULL || !take_u64(cursor, &valid_bytes) || valid_bytes > reserved_bytes) {
        return false;
    }
    ret->user_stack = stack;
    ret->user_stack_bytes = (size_t)valid_bytes;
    ret->user_stack_cut = valid_bytes == reserved_bytes;
    return true;
}

/* Each event of a group has as many words, its count first; the sample's own event is the first. */
static bool read_group(const struct perf_record_layout *layout, const uint64_t *words,
                       struct perf_sample_view *ret)
{
    const size_t event_count = layout->follower_count + 1;
    const size_t event_words = layout->read_words < PERF_GROUP_HEAD_WORDS
                                   ? 0
                                   : (layout->read_words - PERF_GROUP_HEAD_WORDS) / event_count;
    if (layout->follower_count > PERF_FOLLOWERS_MAX || event_words == 0 ||
        words[0] != event_count) {
        return false;
    }
    const uint64_t *event = words + PERF_GROUP_HEAD_WORDS;
    ret->counted = event[0];
    ret->followed.count = (uint32_t)layout->follower_count;
    for (size_t i = 0; i < layout->follower_count; i++) {
        event += event_words;
        ret->followed.values[i] = event[0];
    }
    return true;
}

static bool take_count(const struct perf_record_layout *layout, struct cursor *cursor,
                       struct perf_sample_view *ret)
{
    const uint64_t *words = take_words(cursor, layout->read_words);
    if (words == NULL || layout->read_words == 0) {
        return false;
    }
    if (layout->follower_count > 0) {
        return read_group(layout, words, ret);
    }
    ret->counted = words[0];
    return true;
}

static bool parse_sample(const struct perf_record_layout *layout, struct cursor *cursor,
                         struct perf_record *ret)
{
    uint64_t type = layout->sample_type;
    ret->kind = PERF_KIND_SAMPLE;
    return take_id_words(type, sample_words, COUNT_OF(sample_words), cursor, ret) &&
           ((type & PERF_SAMPLE_READ) == 0 || take_count(layout, cursor, &ret->sample)) &&
           ((type & PERF_SAMPLE_CALLCHAIN) == 0 || take_chain(cursor, &ret->sample)) &&
           ((type & PERF_SAMPLE_REGS_USER) == 0 ||
            take_user_regs(layout->user_regs_mask, cursor, &ret->sample)) &&
           ((type & PERF_SAMPLE_STACK_USER) == 0 || take_user_stack(cursor, &ret->sample)) &&
           ((type & PERF_SAMPLE_CGROUP) == 0 || take_u64(cursor, &ret->sample.cgroup_id));
}

static bool take_build_id(struct cursor *cursor, struct perf_mmap_view *ret)
{
    const uint8_t *field = take(cursor, 4 + PERF_BUILD_ID_BYTES_MAX);
    if (field == NULL || field[0] > PERF_BUILD_ID_BYTES_MAX) {
        return false;
    }
    ret->has_build_id = true;
    ret->build_id_bytes = field[0];
    memcpy(ret->build_id, field + 4, field[0]);
    return true;
}

static bool take_inode(struct cursor *cursor, struct perf_mmap_view *ret)
{
    return take_u32(cursor, &ret->device_major) && take_u32(cursor, &ret->device_minor) &&
           take_u64(cursor, &ret->inode) && take_u64(cursor, &ret->inode_generation);
}

static bool parse_mmap(uint16_t misc, struct cursor *cursor, struct perf_record *ret)
{
    uint32_t protection;
    uint32_t flags;
    struct perf_mmap_view *map = &ret->mmap;
    ret->kind = PERF_KIND_MMAP;
    if (!take_pid(cursor, &ret->pid) || !take_pid(cursor, &ret->tid) ||
        !take_u64(cursor, &map->start) || !take_u64(cursor, &map->size_bytes) ||
        !take_u64(cursor, &map->file_offset)) {
        return false;
    }
    bool ok = (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0 ? take_build_id(cursor, map)
                                                           : take_inode(cursor, map);
    if (!ok || !take_u32(cursor, &protection) || !take_u32(cursor, &flags)) {
        return false;
    }
    map->executable = (protection & PROT_EXEC) != 0;
    map->path = take_string(cursor);
    return map->path != NULL;
}

static bool parse_comm(uint16_t misc, struct cursor *cursor, struct perf_record *ret)
{
    ret->kind = PERF_KIND_COMM;
    if (!take_pid(cursor, &ret->pid) || !take_pid(cursor, &ret->tid)) {
        return false;
    }
    ret->comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    ret->comm.text = take_string(cursor);
    return ret->comm.text != NULL;
}

static bool parse_task(enum perf_record_kind kind, struct cursor *cursor, struct perf_record *ret)
{
    ret->kind = kind;
    if (!take_pid(cursor, &ret->task.pid) || !take_pid(cursor, &ret->task.parent_pid) ||
        !take_pid(cursor, &ret->task.tid) || !take_pid(cursor, &ret->task.parent_tid) ||
        !take_u64(cursor, &ret->task.time_ns)) {
        return false;
    }
    ret->pid = ret->task.pid;
    ret->tid = ret->task.tid;
    return true;
}

static bool parse_lost(struct cursor *cursor, struct perf_record *ret)
{
    uint64_t id;
    ret->kind = PERF_KIND_LOST;
    return take_u64(cursor, &id) && take_u64(cursor, &ret->lost.count);
}

/* Time and ids of the body are those of the trailer again. */
static bool parse_throttle(enum perf_record_kind kind, struct cursor *cursor,
                           struct perf_record *ret)
{
    ret->kind = kind;
    return take(cursor, 3 * sizeof(uint64_t)) != NULL;
}

static bool parse_switch(uint16_t misc, struct cursor *cursor, struct perf_record *ret)
{
    ret->kind = PERF_KIND_SWITCH;
    ret->context_switch.out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
    ret->context_switch.preempted =
        ret->context_switch.out && (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    return take_pid(cursor, &ret->context_switch.other_pid) &&
           take_pid(cursor, &ret->context_switch.other_tid);
}

static bool parse_deferred(struct cursor *cursor, struct perf_record *ret)
{
    uint64_t count;
    ret->kind = PERF_KIND_DEFERRED_CALLCHAIN;
    if (!take_u64(cursor, &ret->deferred.cookie) || !take_u64(cursor, &count)) {
        return false;
    }
    const uint64_t *chain = take_words(cursor, count);
    if (chain == NULL) {
        return false;
    }
    ret->deferred.chain = chain;
    while (ret->deferred.count < count && !is_marker(chain[ret->deferred.count])) {
        ret->deferred.count++;
    }
    return true;
}

/*
 * The ids follow the name. They are not at the record's end where several events of a CPU are told
 * of the symbol: Linux (6.18, and 5.1 by its source) adds the size of the ids for each of them.
 */
static bool parse_ksymbol(uint64_t sample_type, struct cursor *cursor, struct perf_record *ret)
{
    uint16_t words[2]; /* type, flags */
    ret->kind = PERF_KIND_KSYMBOL;
    if (!take_u64(cursor, &ret->ksymbol.start) || !take_u32(cursor, &ret->ksymbol.size_bytes)) {
        return false;
    }
    const uint8_t *bytes = take(cursor, sizeof words);
    if (bytes == NULL) {
        return false;
    }
    memcpy(words, bytes, sizeof words);
    ret->ksymbol.is_bpf = words[0] == PERF_RECORD_KSYMBOL_TYPE_BPF;
    ret->ksymbol.gone = (words[1] & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0;
    ret->ksymbol.name = take_string(cursor);
    if (ret->ksymbol.name == NULL) {
        return false;
    }
    size_t name_words = strlen(ret->ksymbol.name) / sizeof(uint64_t) + 1;
    return take_words(cursor, name_words) != NULL &&
           take_id_words(sample_type, trailer_words, COUNT_OF(trailer_words), cursor, ret);
}

static bool parse_cgroup(struct cursor *cursor, struct perf_record *ret)
{
    ret->kind = PERF_KIND_CGROUP;
    if (!take_u64(cursor, &ret->cgroup.id)) {
        return false;
    }
    ret->cgroup.path = take_string(cursor);
    return ret->cgroup.path != NULL;
}

/* Takes the trailer off the end. */
static bool take_trailer(uint64_t sample_type, struct cursor *cursor, struct perf_record *ret)
{
    size_t trailer_bytes =
        (size_t)__builtin_popcountll(sample_type & TRAILER_BITS) * sizeof(uint64_t);
    if (trailer_bytes > cursor->left_bytes) {
        return false;
    }
    cursor->left_bytes -= trailer_bytes;
    struct cursor trailer = {cursor->at + cursor->left_bytes, trailer_bytes};
    return take_id_words(sample_type, trailer_words, COUNT_OF(trailer_words), &trailer, ret);
}

static bool parse_other_than_sample(uint64_t sample_type, const struct perf_event_header *header,
                                    struct cursor *cursor, struct perf_record *ret)
{
    if (header->type == PERF_RECORD_KSYMBOL) {
        return parse_ksymbol(sample_type, cursor, ret);
    }
    bool has_trailer = take_trailer(sample_type, cursor, ret);
    switch (header->type) {
    case PERF_RECORD_MMAP2:
        return has_trailer && parse_mmap(header->misc, cursor, ret);
    case PERF_RECORD_COMM:
        return has_trailer && parse_comm(header->misc, cursor, ret);
    case PERF_RECORD_FORK:
        return has_trailer && parse_task(PERF_KIND_FORK, cursor, ret);
    case PERF_RECORD_EXIT:
        return has_trailer && parse_task(PERF_KIND_EXIT, cursor, ret);
    case PERF_RECORD_LOST:
        return has_trailer && parse_lost(cursor, ret);
    case PERF_RECORD_THROTTLE:
        return has_trailer && parse_throttle(PERF_KIND_THROTTLE, cursor, ret);
    case PERF_RECORD_UNTHROTTLE:
        return has_trailer && parse_throttle(PERF_KIND_UNTHROTTLE, cursor, ret);
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return has_trailer && parse_switch(header->misc, cursor, ret);
    case PERF_RECORD_CALLCHAIN_DEFERRED:
        return has_trailer && parse_deferred(cursor, ret);
    case PERF_RECORD_CGROUP:
        return has_trailer && parse_cgroup(cursor, ret);
    default:
        ret->kind = PERF_KIND_OTHER;
        return true;
    }
}

static enum perf_cpu_mode cpu_mode(uint16_t misc)
{
    switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_CPUMODE_UNKNOWN:
        return PERF_MODE_UNKNOWN;
    case PERF_RECORD_MISC_KERNEL:
        return PERF_MODE_KERNEL;
    case PERF_RECORD_MISC_USER:
        return PERF_MODE_USER;
    default:
        return PERF_MODE_OTHER;
    }
}

int perf_record_parse(const struct perf_record_layout *layout, const uint8_t *bytes,
                      size_t size_bytes, struct perf_record *ret)
{
    struct cursor cursor = {bytes, size_bytes};
    struct perf_event_header header;
    const uint8_t *start = take(&cursor, sizeof header);
    if (start == NULL) {
        return -EBADMSG;
    }
    memcpy(&header, start, sizeof header);
    bool is_sample = header.type == PERF_RECORD_SAMPLE;
    /* Only a copied stack can have an odd size (perf_ring.c). */
    if (header.size != size_bytes || (!is_sample && size_bytes % sizeof(uint64_t) != 0)) {
        return -EBADMSG;
    }

    *ret = (struct perf_record){.mode = cpu_mode(header.misc)};
    bool ok = is_sample ? parse_sample(layout, &cursor, ret)
                        : parse_other_than_sample(layout->sample_type, &header, &cursor, ret);
    return ok ? 0 : -EBADMSG;
}
