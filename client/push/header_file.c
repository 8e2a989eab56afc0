/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads headers. A file that its group or others may read is refused, since what is in it would be
 * no secret. systemd hands a credential to one user by an access list, which shows as the group's
 * right; so in its folder only the rights of others count.
 */
#include "header_file.h"

#include "cleanup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)32768)
#define LINE_BYTES_MAX ((size_t)4096)
#define SECRET_BYTES   6 /* what is shorter hides too much of a text */
#define HIDDEN         "[hidden]"
#define TOKEN_BYTES    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Those that say what a request is, which are the sender's. */
static const char *const own_names[] = {
    "content-type", "content-encoding", "content-length", "transfer-encoding",
    "host",         "connection",       "expect",
};

void header_file_done(struct header_file *headers)
{
    if (headers->text != NULL) {
        explicit_bzero(headers->text, headers->size_bytes);
    }
    free(headers->text);
    *headers = (struct header_file){0};
}

static bool is_credential(const char *path)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t bytes = folder == NULL ? 0 : strlen(folder);
    return bytes > 0 && strncmp(path, folder, bytes) == 0 && path[bytes] == '/';
}

static int check_rights(const char *path, int fd, struct fault *reterr)
{
    struct stat status;
    mode_t others = is_credential(path) ? S_IRWXO : S_IRWXG | S_IRWXO;
    if (fstat(fd, &status) < 0) {
        return fault_set(reterr, errno, "%s cannot be looked at: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return fault_set(reterr, EINVAL, "%s is no regular file", path);
    }
    if ((status.st_mode & others) != 0) {
        return fault_set(reterr, EPERM,
                         "%s has the mode %04o, so others may read the headers in it; chmod 600",
                         path, (unsigned)(status.st_mode & 07777));
    }
    return 0;
}

/* Whether a line is "Name: value", of a header that is not the sender's own. */
static const char *find_mistake(const char *line)
{
    size_t name_bytes = strspn(line, TOKEN_BYTES);
    if (name_bytes == 0 || line[name_bytes] != ':') {
        return "is no header; write Name: value";
    }
    if (strlen(line) > LINE_BYTES_MAX) {
        return "is too long: it may have 4096 bytes";
    }
    for (const char *at = line; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' && *at != '\t') {
            return "has a control character";
        }
    }
    if (line[name_bytes + 1 + strspn(line + name_bytes + 1, " \t")] == '\0') {
        return "has no value";
    }
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        if (strlen(own_names[i]) == name_bytes &&
            strncasecmp(line, own_names[i], name_bytes) == 0) {
            return "is a header that profctl writes itself";
        }
    }
    return NULL;
}

static int split_lines(const char *path, struct header_file *headers, struct fault *reterr)
{
    char *rest = headers->text;
    unsigned number = 0;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        size_t bytes = strlen(line);
        number++;
        while (bytes > 0 && strchr(" \t\r", line[bytes - 1]) != NULL) {
            line[--bytes] = '\0';
        }
        if (bytes == 0 || line[0] == '#') {
            continue;
        }
        const char *mistake = find_mistake(line);
        if (mistake == NULL && headers->count == HEADER_FILE_LINES_MAX) {
            mistake = "is one header too many: there may be 64";
        }
        if (mistake != NULL) {
            return fault_set(reterr, EINVAL, "%s: line %u %s", path, number, mistake);
        }
        headers->lines[headers->count++] = line;
    }
    return 0;
}

int header_file_read(const char *path, struct header_file *ret, struct fault *reterr)
{
    cleanup_(header_file_done) struct header_file headers = {.count = 0};
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return fault_set(reterr, errno, "%s cannot be opened: %s", path, strerror(errno));
    }
    int r = check_rights(path, fd, reterr);
    if (r < 0) {
        return r;
    }
    headers.text = calloc(1, FILE_BYTES_MAX + 2);
    if (headers.text == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", path);
    }
    headers.size_bytes = FILE_BYTES_MAX + 2;
    ssize_t bytes = read(fd, headers.text, FILE_BYTES_MAX + 1);
    if (bytes < 0) {
        return fault_set(reterr, errno, "%s cannot be read: %s", path, strerror(errno));
    }
    if ((size_t)bytes > FILE_BYTES_MAX) {
        return fault_set(reterr, EFBIG, "%s is too long: it may have %zu bytes", path,
                         FILE_BYTES_MAX);
    }
    if (memchr(headers.text, '\0', (size_t)bytes) != NULL) {
        return fault_set(reterr, EINVAL, "%s is no text: it has a NUL", path);
    }
    r = split_lines(path, &headers, reterr);
    if (r < 0) {
        return r;
    }
    *ret = headers;
    headers = (struct header_file){0};
    return 0;
}

static void hide_word(const char *word, size_t word_bytes, char *text, size_t capacity_bytes)
{
    if (word_bytes < SECRET_BYTES) {
        return;
    }
    size_t hidden_bytes = strlen(HIDDEN);
    for (char *at = text; (at = memmem(at, strlen(at), word, word_bytes)) != NULL;) {
        size_t rest_bytes = strlen(at + word_bytes);
        size_t room_bytes = capacity_bytes - (size_t)(at - text) - 1;
        size_t shown_bytes = hidden_bytes < room_bytes ? hidden_bytes : room_bytes;
        size_t left_bytes = room_bytes - shown_bytes;
        left_bytes = rest_bytes < left_bytes ? rest_bytes : left_bytes;
        memmove(at + shown_bytes, at + word_bytes, left_bytes);
        memcpy(at, HIDDEN, shown_bytes);
        at[shown_bytes + left_bytes] = '\0';
        at += shown_bytes;
    }
}

/* Does something with each value, and each of its words. */
static void each_word(const struct header_file *headers,
                      void (*take)(const char *word, size_t word_bytes, char *text,
                                   size_t capacity_bytes),
                      char *text, size_t capacity_bytes)
{
    for (size_t i = 0; i < headers->count; i++) {
        const char *value = strchr(headers->lines[i], ':') + 1;
        value += strspn(value, " \t");
        take(value, strlen(value), text, capacity_bytes);
        for (const char *at = value; *at != '\0';) {
            size_t bytes = strcspn(at, " \t");
            take(at, bytes, text, capacity_bytes);
            at += bytes;
            at += strspn(at, " \t");
        }
    }
}

void header_file_hide(const struct header_file *headers, char *text, size_t capacity_bytes)
{
    each_word(headers, hide_word, text, capacity_bytes);
}

static void cut_beginning(const char *word, size_t word_bytes, char *text, size_t capacity_bytes)
{
    size_t text_bytes = strlen(text);
    size_t bytes = word_bytes < text_bytes ? word_bytes : text_bytes;
    (void)capacity_bytes;
    while (bytes > 0 && memcmp(text + text_bytes - bytes, word, bytes) != 0) {
        bytes--;
    }
    text[text_bytes - (word_bytes < SECRET_BYTES ? 0 : bytes)] = '\0';
}

void header_file_hide_beginning(const struct header_file *headers, char *text)
{
    each_word(headers, cut_beginning, text, strlen(text));
}
