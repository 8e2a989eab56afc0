/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges requests. Any program and any page of this machine's browsers can send one, so the path
 * must have the token, which is compared in a time that does not tell how much of it was right; and
 * the host must be this machine by its own name or address, or else a page of a foreign name that
 * leads here would be of the same origin. Only the viewer's pages are allowed to read an answer.
 */
#include "view_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOST_BYTES 64
#define PATH_BYTES 256

struct request {
    const char *method;
    size_t method_bytes;
    const char *path;
    size_t path_bytes;
    const char *host; /* NULL: it names none, or several */
    size_t host_bytes;
};

size_t view_request_bytes(const char *text, size_t bytes)
{
    const char *end = memmem(text, bytes, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - text) + 4;
}

/* The next line (without its end) from `*at` on; false: there is none. */
static bool next_line(const char *head, size_t head_bytes, size_t *at, const char **ret,
                      size_t *ret_bytes)
{
    const char *end = memmem(head + *at, head_bytes - *at, "\r\n", 2);
    if (end == NULL) {
        return false;
    }
    *ret = head + *at;
    *ret_bytes = (size_t)(end - *ret);
    *at += *ret_bytes + 2;
    return true;
}

/* "METHOD PATH HTTP/1.x" */
static bool read_first_line(const char *line, size_t bytes, struct request *request)
{
    static const char version[] = " HTTP/1.";
    const size_t version_bytes = sizeof version - 1;
    const char *space = memchr(line, ' ', bytes);
    if (space == NULL || bytes < version_bytes + 1 ||
        memcmp(line + bytes - version_bytes - 1, version, version_bytes) != 0) {
        return false;
    }
    const char *last = line + bytes - version_bytes - 1;
    request->method = line;
    request->method_bytes = (size_t)(space - line);
    request->path = space + 1;
    request->path_bytes = last > space ? (size_t)(last - space) - 1 : 0;
    return request->path_bytes > 0;
}

static void read_field(const char *line, size_t bytes, struct request *request, size_t *host_count)
{
    static const char name[] = "Host:";
    const size_t name_bytes = sizeof name - 1;
    if (bytes < name_bytes || strncasecmp(line, name, name_bytes) != 0) {
        return;
    }
    const char *value = line + name_bytes;
    const char *end = line + bytes;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    while (end > value && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    request->host = ++*host_count == 1 ? value : NULL;
    request->host_bytes = (size_t)(end - value);
}

static bool read_head(const char *head, size_t head_bytes, struct request *request)
{
    const char *line = NULL;
    size_t bytes = 0;
    size_t at = 0;
    size_t host_count = 0;
    *request = (struct request){0};
    if (!next_line(head, head_bytes, &at, &line, &bytes) ||
        !read_first_line(line, bytes, request)) {
        return false;
    }
    while (next_line(head, head_bytes, &at, &line, &bytes) && bytes > 0) {
        read_field(line, bytes, request, &host_count);
    }
    return true;
}

static bool is_text(const char *bytes, size_t count, const char *text)
{
    return count == strlen(text) && memcmp(bytes, text, count) == 0;
}

/* Looks at all bytes, whatever the first ones are. */
static bool is_secret(const char *bytes, size_t count, const char *secret)
{
    unsigned char difference = 0;
    if (count != strlen(secret)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        difference |= (unsigned char)(bytes[i] ^ secret[i]);
    }
    return difference == 0;
}

static bool is_own_host(const struct view_site *site, const struct request *request)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char host[HOST_BYTES];
    for (size_t i = 0; request->host != NULL && i < sizeof names / sizeof *names; i++) {
        (void)snprintf(host, sizeof host, "%s:%" PRIu16, names[i], site->port);
        if (is_text(request->host, request->host_bytes, host)) {
            return true;
        }
    }
    return false;
}

__attribute__((format(printf, 3, 4))) static void
set_answer(struct view_answer *answer, const char *status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(answer->head, sizeof answer->head,
                        "HTTP/1.1 %s\r\nConnection: close\r\nCache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n",
                        status);
    int more =
        vsnprintf(answer->head + used, sizeof answer->head - (size_t)used, format, arguments);
    va_end(arguments);
    answer->head_bytes = (size_t)used + (size_t)more;
    answer->has_file = false;
}

static void refuse(struct view_answer *answer, const char *status)
{
    set_answer(answer, status, "Content-Length: 0\r\n\r\n");
}

/* A page that is its own viewer, which no other page may read. */
static void answer_page(const struct request *request, uint64_t file_bytes,
                        struct view_answer *answer)
{
    set_answer(answer, "200 OK",
               "Content-Type: text/html; charset=utf-8\r\nContent-Length: %" PRIu64 "\r\n\r\n",
               file_bytes);
    answer->has_file = is_text(request->method, request->method_bytes, "GET");
}

static void answer_file(const struct view_site *site, const struct request *request,
                        uint64_t file_bytes, struct view_answer *answer)
{
    if (is_text(request->method, request->method_bytes, "OPTIONS")) {
        set_answer(answer, "204 No Content",
                   "Access-Control-Allow-Origin: %s\r\nAccess-Control-Allow-Methods: GET\r\n"
                   "Access-Control-Allow-Headers: *\r\n"
                   "Access-Control-Allow-Private-Network: true\r\n\r\n",
                   site->origin);
        return;
    }
    set_answer(answer, "200 OK",
               "Access-Control-Allow-Origin: %s\r\nContent-Type: application/octet-stream\r\n"
               "Content-Length: %" PRIu64 "\r\n\r\n",
               site->origin, file_bytes);
    answer->has_file = is_text(request->method, request->method_bytes, "GET");
}

void view_request_answer(const struct view_site *site, const char *head, size_t head_bytes,
                         uint64_t file_bytes, struct view_answer *ret)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS"};
    char page[PATH_BYTES];
    char file[PATH_BYTES];
    struct request request;
    bool is_known = false;
    (void)snprintf(page, sizeof page, "/%s/", site->token);
    (void)snprintf(file, sizeof file, "/%s/%s", site->token, site->file_name);
    if (!read_head(head, head_bytes, &request)) {
        refuse(ret, "400 Bad Request");
        return;
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        is_known = is_known || is_text(request.method, request.method_bytes, methods[i]);
    }
    if (!is_known ||
        (site->origin == NULL && is_text(request.method, request.method_bytes, "OPTIONS"))) {
        refuse(ret, "405 Method Not Allowed");
    } else if (!is_own_host(site, &request)) {
        refuse(ret, "403 Forbidden");
    } else if (is_secret(request.path, request.path_bytes, page)) {
        if (site->origin == NULL) {
            answer_page(&request, file_bytes, ret);
        } else {
            set_answer(ret, "302 Found", "Location: %s\r\nContent-Length: 0\r\n\r\n", site->target);
        }
    } else if (site->origin != NULL && is_secret(request.path, request.path_bytes, file)) {
        answer_file(site, &request, file_bytes, ret);
    } else {
        refuse(ret, "404 Not Found");
    }
}
