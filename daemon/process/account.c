/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The accounts of the machine, read from three files. One table for the process: it
 * describes the machine and belongs to no session. The lock is held for a search of the table or an
 * exchange of pointers only. An account_load() for which a file has changed builds a new table and
 * frees the old one. A file that changes twice within a tick of the clock keeps its times, so those
 * of a file that was young when it was read prove nothing.
 */
#include "account.h"

#include "cleanup.h"
#include "clock.h"
#include "grow.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK_UIDS      65536U /* what a container gets */
#define CONTAINER_FIRST 524288U
#define CONTAINER_LAST  1879048191U /* both from systemd's UIDS-GIDS */
#define LINE_BYTES      512         /* of /etc/subuid; longer lines are ignored */
#define NAME_BYTES      257         /* a login name and its NUL */
#define YOUNG_NS        NS_PER_S

struct range {
    uint32_t first;
    uint32_t count;
    uint32_t account; /* 0: root's, by blocks */
};

struct named_range {
    struct range range;
    char name[NAME_BYTES]; /* "": the account is known */
};

struct named_ranges {
    struct named_range *items; /* owned */
    size_t count;
    size_t capacity;
};

struct ranges {
    struct range *items; /* owned */
    size_t count;
    bool has_containers; /* no uid of a container is a user that no file lists */
};

/* What stat() says of a file; all zero: it is not there. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size_bytes;
    uint64_t changed_ns; /* of CLOCK_REALTIME */
};

/* Of the files that `current` was made of; used by account_load() alone. */
static struct {
    bool is_proof; /* the same stamps again mean the same contents */
    struct stamp subuid;
    struct stamp passwd;
    struct stamp nsswitch;
} loaded;

static pthread_mutex_t mutex; /* over `current` */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ranges current;

static void init_mutex(void)
{
    threads_init_lock(&mutex);
}

static void lock(void)
{
    (void)pthread_once(&once, init_mutex);
    (void)pthread_mutex_lock(&mutex);
}

/* A decimal number of 32 bits that ends at `end`. */
static bool parse_number(const char *text, char end, uint32_t *ret, const char **ret_rest)
{
    char *rest = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &rest, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || *rest != end || value > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)value;
    *ret_rest = rest + 1;
    return true;
}

/* NAME:FIRST:COUNT or UID:FIRST:COUNT, without the newline. */
static bool parse_line(const char *line, struct named_range *ret)
{
    const char *rest = NULL;
    size_t name_bytes = strcspn(line, ":");
    if (name_bytes == 0 || name_bytes >= NAME_BYTES || line[name_bytes] != ':') {
        return false;
    }
    const char *numbers = line + name_bytes + 1;
    if (!parse_number(numbers, ':', &ret->range.first, &rest) ||
        !parse_number(rest, '\0', &ret->range.count, &rest) || ret->range.count == 0 ||
        ret->range.count - 1 > UINT32_MAX - ret->range.first) {
        return false;
    }
    memcpy(ret->name, line, name_bytes);
    ret->name[name_bytes] = '\0';
    if (parse_number(ret->name, '\0', &ret->range.account, &rest)) {
        ret->name[0] = '\0';
    }
    return true;
}

static bool is_of_container(uint32_t uid)
{
    return uid >= CONTAINER_FIRST && uid <= CONTAINER_LAST;
}

static int read_ranges(FILE *file, struct named_ranges *ranges)
{
    char line[LINE_BYTES];
    bool is_whole = true; /* what was read last ended its line */
    while (ranges->count < ACCOUNT_RANGES_MAX && fgets(line, sizeof line, file) != NULL) {
        size_t bytes = strlen(line);
        bool is_first = is_whole;
        is_whole = bytes > 0 && line[bytes - 1] == '\n';
        if (is_whole) {
            line[bytes - 1] = '\0';
        }
        if (!is_first || (!is_whole && bytes == sizeof line - 1)) {
            continue;
        }
        int r = grow(ranges->items, ranges->capacity, ranges->count + 1);
        if (r < 0) {
            return r;
        }
        ranges->count += parse_line(line, &ranges->items[ranges->count]);
    }
    return ferror(file) != 0 ? -EIO : 0;
}

static void resolve_name(struct named_range *ranges, size_t count, const char *name,
                         uint32_t account)
{
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].name[0] != '\0' && strcmp(ranges[i].name, name) == 0) {
            ranges[i].range.account = account;
            ranges[i].name[0] = '\0';
        }
    }
}

/* NAME:PASSWORD:UID:... of /etc/passwd. `line` becomes the name. */
static bool parse_user(char *line, uint32_t *ret_uid)
{
    const char *rest = NULL;
    size_t name_bytes = strcspn(line, ":");
    const char *password = line[name_bytes] == ':' ? line + name_bytes + 1 : "";
    const char *uid = password + strcspn(password, ":");
    line[name_bytes] = '\0';
    return *uid == ':' && parse_number(uid + 1, ':', ret_uid, &rest);
}

static int append_user(struct named_ranges *ranges, uint32_t uid)
{
    int r = grow(ranges->items, ranges->capacity, ranges->count + 1);
    if (r < 0) {
        return r;
    }
    ranges->items[ranges->count++] =
        (struct named_range){.range = {.first = uid, .count = 1, .account = uid}};
    return 0;
}

/* Gives ranges with the name of a user their account. Users with the uid of a container are put
 * behind them, each as a range of one. */
static int read_users(FILE *file, struct named_ranges *ranges)
{
    cleanup_(freep) char *line = NULL;
    size_t line_capacity = 0;
    const size_t named_count = ranges->count;
    uint32_t uid = 0;
    while (getline(&line, &line_capacity, file) >= 0) {
        if (!parse_user(line, &uid)) {
            continue;
        }
        resolve_name(ranges->items, named_count, line, uid);
        if (is_of_container(uid) && ranges->count - named_count < ACCOUNT_RANGES_MAX) {
            int r = append_user(ranges, uid);
            if (r < 0) {
                return r;
            }
        }
    }
    return ferror(file) != 0 ? -EIO : 0;
}

/* Ranges of a name that no user has are one account, too. */
static void resolve_rest(const struct named_ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->items[i].name[0] != '\0') {
            char name[NAME_BYTES];
            memcpy(name, ranges->items[i].name, sizeof name);
            resolve_name(ranges->items, ranges->count, name, ranges->items[i].range.first);
        }
    }
}

static bool is_listed(const char *source)
{
    return strcmp(source, "files") == 0 || strcmp(source, "compat") == 0 ||
           strcmp(source, "systemd") == 0;
}

/* Blanks each [STATUS=ACTION...], which may follow its source at once and have blanks in it. */
static void blank_actions(char *text)
{
    for (char *open = strchr(text, '['); open != NULL; open = strchr(open, '[')) {
        memset(open, ' ', strcspn(open, "]") + (strchr(open, ']') != NULL));
    }
}

/* Whether a line "passwd: SOURCE..." of the file names a source of users that no file lists. As
 * glibc reads it, no blank needs to follow the colon. */
static bool names_other_source(FILE *file)
{
    static const char blanks[] = " \t\n";
    static const char database[] = "passwd:";
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "#")] = '\0';
        char *begin = line + strspn(line, blanks);
        if (strncmp(begin, database, sizeof database - 1) != 0) {
            continue;
        }
        blank_actions(begin);
        char *rest = NULL;
        const char *word = strtok_r(begin + sizeof database - 1, blanks, &rest);
        for (; !found && word != NULL; word = strtok_r(NULL, blanks, &rest)) {
            found = !is_listed(word);
        }
    }
    return found;
}

/* `*ret` is NULL when the file is not there, which is no error. */
static int open_file(const char *path, FILE **ret)
{
    *ret = fopen(path, "re");
    return *ret != NULL || errno == ENOENT ? 0 : -errno;
}

static int build(const struct account_files *files, struct ranges *ret)
{
    cleanup_(fclosep) FILE *subuid = NULL;
    cleanup_(fclosep) FILE *passwd = NULL;
    cleanup_(fclosep) FILE *nsswitch = NULL;
    struct named_ranges named = {0};
    int r = open_file(files->subuid, &subuid);
    r = r < 0 ? r : open_file(files->passwd, &passwd);
    r = r < 0 ? r : open_file(files->nsswitch, &nsswitch);
    r = r < 0 || subuid == NULL ? r : read_ranges(subuid, &named);
    r = r < 0 || passwd == NULL ? r : read_users(passwd, &named);
    struct range *items = r < 0 ? NULL : calloc(named.count + 1, sizeof *items);
    if (items != NULL) {
        resolve_rest(&named);
        for (size_t i = 0; i < named.count; i++) {
            items[i] = named.items[i].range;
        }
        *ret =
            (struct ranges){items, named.count, nsswitch == NULL || !names_other_source(nsswitch)};
    }
    free(named.items);
    return r < 0 || items != NULL ? r : -ENOMEM;
}

static struct stamp stamp_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0) {
        return (struct stamp){.inode = 0};
    }
    return (struct stamp){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size_bytes = status.st_size,
        .changed_ns = (uint64_t)status.st_ctim.tv_sec * NS_PER_S + (uint64_t)status.st_ctim.tv_nsec,
    };
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->changed_ns == b->changed_ns;
}

static bool is_young(const struct stamp *stamp)
{
    return stamp->changed_ns + YOUNG_NS > clock_ns(CLOCK_REALTIME);
}

int account_load(const struct account_files *files)
{
    const struct stamp subuid = stamp_of(files->subuid);
    const struct stamp passwd = stamp_of(files->passwd);
    const struct stamp nsswitch = stamp_of(files->nsswitch);
    const bool is_proof = !is_young(&subuid) && !is_young(&passwd) && !is_young(&nsswitch);
    if (loaded.is_proof && is_same(&subuid, &loaded.subuid) && is_same(&passwd, &loaded.passwd) &&
        is_same(&nsswitch, &loaded.nsswitch)) {
        return 0;
    }
    struct ranges ranges = {0};
    int r = build(files, &ranges);
    if (r < 0) {
        return r;
    }
    lock();
    struct ranges old = current;
    current = ranges;
    (void)pthread_mutex_unlock(&mutex);
    free(old.items);
    loaded.is_proof = is_proof;
    loaded.subuid = subuid;
    loaded.passwd = passwd;
    loaded.nsswitch = nsswitch;
    return 1;
}

uint32_t account_of(uid_t uid)
{
    lock();
    uint32_t account =
        current.has_containers && is_of_container(uid) ? uid / BLOCK_UIDS * BLOCK_UIDS : uid;
    for (size_t i = 0; i < current.count; i++) {
        const struct range *range = &current.items[i];
        if (uid >= range->first && uid - range->first < range->count) {
            account = range->account != 0
                          ? range->account
                          : range->first + (uid - range->first) / BLOCK_UIDS * BLOCK_UIDS;
            break;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return account;
}
