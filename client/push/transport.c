/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Posts messages. The client library is loaded when it is needed, since it loads a whole HTTP
 * client, which no other verb needs. Of an answer a bounded part is kept.
 */
#include "transport.h"

#include "answer.h"
#include "cleanup.h"
#include "header_file.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define PATH_DEFAULT      "/v1development/profiles"
#define URL_BYTES_MAX     ((size_t)2048)
#define BODY_BYTES_MAX    ((size_t)65536)
#define CONNECT_TIMEOUT_S 10L
#define WAIT_S_MAX        3600
#define GZIP_LEVEL        6
#define GZIP_WINDOW       (15 + 16) /* zlib's way to say gzip */
#define GZIP_MEMORY       8

/* The functions of the library. */
struct curl_calls {
    __typeof__(curl_easy_init) *init;
    __typeof__(curl_easy_setopt) *set;
    __typeof__(curl_easy_perform) *perform;
    __typeof__(curl_easy_getinfo) *get;
    __typeof__(curl_easy_cleanup) *cleanup;
    __typeof__(curl_easy_strerror) *error_text;
    __typeof__(curl_slist_append) *append;
    __typeof__(curl_slist_free_all) *free_all;
};

struct transport {
    struct curl_calls calls;
    CURL *curl;                 /* owned */
    struct curl_slist *headers; /* owned */
    struct header_file file;
    uint8_t *packed; /* owned */
    size_t packed_capacity;
    bool is_plain;
    char url[URL_BYTES_MAX];
    char error[CURL_ERROR_SIZE];
    const uint8_t *sent; /* borrowed; the body of the request at hand */
    size_t sent_bytes;
    size_t sent_at; /* what libcurl has taken of it */
    char body[BODY_BYTES_MAX + 1];
    size_t body_bytes;
    bool is_cut;
};

int transport_check_url(const char *url, bool *ret_has_path, struct fault *reterr)
{
    static const char *const schemes[] = {"http://", "https://"};
    const char *host = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t bytes = strlen(schemes[i]);
        host = strncasecmp(url, schemes[i], bytes) == 0 ? url + bytes : host;
    }
    size_t host_bytes = host == NULL ? 0 : strcspn(host, "/?#");
    if (host_bytes == 0) {
        return fault_set(reterr, EINVAL, "is no address of http:// or https://");
    }
    if (memchr(host, '@', host_bytes) != NULL) {
        return fault_set(reterr, EINVAL,
                         "has a user in it, which every process can see; put credentials into a "
                         "file, and name that with --headers");
    }
    for (const char *at = url; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == '#' || *at == '\x7f') {
            return fault_set(reterr, EINVAL, "has a space, a '#' or a control character in it");
        }
    }
    if (strlen(url) > URL_BYTES_MAX - sizeof PATH_DEFAULT) {
        return fault_set(reterr, EINVAL, "is too long");
    }
    *ret_has_path = host[host_bytes] != '\0' && strcmp(host + host_bytes, "/") != 0;
    return 0;
}

static int load_library(struct curl_calls *calls, struct fault *reterr)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    struct {
        const char *name;
        void *into;
    } functions[] = {
        {"curl_easy_init", &calls->init},       {"curl_easy_setopt", &calls->set},
        {"curl_easy_perform", &calls->perform}, {"curl_easy_getinfo", &calls->get},
        {"curl_easy_cleanup", &calls->cleanup}, {"curl_easy_strerror", &calls->error_text},
        {"curl_slist_append", &calls->append},  {"curl_slist_free_all", &calls->free_all},
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = library == NULL ? NULL : dlsym(library, functions[i].name);
        if (symbol == NULL) {
            return fault_set(reterr, ENOENT,
                             "libcurl is not installed, which sends what is pushed; on Debian "
                             "apt-get install libcurl4");
        }
        memcpy(functions[i].into, &symbol, sizeof symbol);
    }
    return 0;
}

/* Takes a piece of an answer; what is beyond the limit is read and dropped. */
static size_t take_body(char *bytes, size_t item_bytes, size_t count, void *userdata)
{
    struct transport *transport = userdata;
    size_t size_bytes = item_bytes * count;
    size_t room_bytes = BODY_BYTES_MAX - transport->body_bytes;
    size_t kept_bytes = size_bytes < room_bytes ? size_bytes : room_bytes;
    memcpy(transport->body + transport->body_bytes, bytes, kept_bytes);
    transport->body_bytes += kept_bytes;
    transport->is_cut = transport->is_cut || kept_bytes < size_bytes;
    return size_bytes;
}

/* Gives a piece of the request. */
static size_t give_body(char *into, size_t item_bytes, size_t count, void *userdata)
{
    struct transport *transport = userdata;
    size_t room_bytes = item_bytes * count;
    size_t left_bytes = transport->sent_bytes - transport->sent_at;
    size_t given_bytes = left_bytes < room_bytes ? left_bytes : room_bytes;
    memcpy(into, transport->sent + transport->sent_at, given_bytes);
    transport->sent_at += given_bytes;
    return given_bytes;
}

/* libcurl would send a request again by itself when a connection that it had kept ends without an
 * answer, and it would not be known that it may have come twice. */
static int refuse_rewind(void *userdata, curl_off_t offset, int origin)
{
    (void)userdata, (void)offset, (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

static bool add_header(struct transport *transport, const char *line)
{
    struct curl_slist *longer = transport->calls.append(transport->headers, line);
    transport->headers = longer == NULL ? transport->headers : longer;
    return longer != NULL;
}

static bool add_headers(struct transport *transport)
{
    /* Without an Expect of libcurl's own, which few stores answer, a body goes at once. */
    bool is_added = add_header(transport, "Content-Type: application/x-protobuf") &&
                    add_header(transport, "Expect:") &&
                    (transport->is_plain || add_header(transport, "Content-Encoding: gzip"));
    for (size_t i = 0; i < transport->file.count && is_added; i++) {
        is_added = add_header(transport, transport->file.lines[i]);
    }
    return is_added;
}

/* Sets all that is the same for each request. */
static bool set_up(struct transport *transport, const struct push_target *target)
{
    __typeof__(curl_easy_setopt) *set = transport->calls.set;
    CURL *curl = transport->curl;
    bool is_set = set(curl, CURLOPT_URL, transport->url) == CURLE_OK &&
                  set(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                  set(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
                  set(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  set(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
                  set(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S) == CURLE_OK &&
                  set(curl, CURLOPT_TIMEOUT, (long)target->timeout_s) == CURLE_OK &&
                  set(curl, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
                  set(curl, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
                  set(curl, CURLOPT_HTTPHEADER, transport->headers) == CURLE_OK &&
                  set(curl, CURLOPT_USERAGENT, "profctl/" CPU_PROFILERD_VERSION) == CURLE_OK &&
                  set(curl, CURLOPT_ERRORBUFFER, transport->error) == CURLE_OK &&
                  set(curl, CURLOPT_POST, 1L) == CURLE_OK &&
                  set(curl, CURLOPT_READFUNCTION, give_body) == CURLE_OK &&
                  set(curl, CURLOPT_READDATA, transport) == CURLE_OK &&
                  set(curl, CURLOPT_SEEKFUNCTION, refuse_rewind) == CURLE_OK &&
                  set(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
                  set(curl, CURLOPT_WRITEDATA, transport) == CURLE_OK;
    if (is_set && target->ca_path != NULL) {
        is_set = set(curl, CURLOPT_CAINFO, target->ca_path) == CURLE_OK;
    }
    if (is_set && target->proxy != NULL) {
        is_set = set(curl, CURLOPT_PROXY, target->proxy) == CURLE_OK;
    }
    return is_set;
}

int transport_new(const struct push_target *target, struct transport **ret, struct fault *reterr)
{
    struct transport *transport = calloc(1, sizeof *transport);
    bool has_path = false;
    if (transport == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    int r = transport_check_url(target->url, &has_path, reterr);
    if (r == 0 && target->headers_path != NULL) {
        r = header_file_read(target->headers_path, &transport->file, reterr);
    }
    r = r < 0 ? r : load_library(&transport->calls, reterr);
    if (r == 0) {
        size_t url_bytes = strlen(target->url);
        url_bytes -= !has_path && target->url[url_bytes - 1] == '/';
        (void)snprintf(transport->url, sizeof transport->url, "%.*s%s", (int)url_bytes, target->url,
                       has_path ? "" : PATH_DEFAULT);
        transport->is_plain = target->is_plain;
        transport->curl = transport->calls.init();
        if (transport->curl == NULL || !add_headers(transport) || !set_up(transport, target)) {
            r = fault_set(reterr, ENOMEM,
                          "libcurl cannot be used: it is too old, or there is not "
                          "enough memory");
        }
    }
    if (r < 0) {
        (void)transport_free(transport);
        return r;
    }
    *ret = transport;
    return 0;
}

struct transport *transport_free(struct transport *transport)
{
    if (transport != NULL) {
        if (transport->curl != NULL) {
            transport->calls.cleanup(transport->curl);
        }
        if (transport->headers != NULL) {
            transport->calls.free_all(transport->headers);
        }
        header_file_done(&transport->file);
        free(transport->packed);
        free(transport);
    }
    return NULL;
}

const char *transport_url(const struct transport *transport)
{
    return transport->url;
}

/* Compresses a message. Returns its bytes then, or 0: there is no memory. */
static size_t pack(struct transport *transport, const uint8_t *bytes, size_t size_bytes)
{
    z_stream stream = {0};
    if (size_bytes > UINT32_MAX || deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW,
                                                GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        return 0;
    }
    size_t bound_bytes = deflateBound(&stream, size_bytes);
    if (bound_bytes > transport->packed_capacity) {
        uint8_t *larger = realloc(transport->packed, bound_bytes);
        if (larger == NULL) {
            (void)deflateEnd(&stream);
            return 0;
        }
        transport->packed = larger;
        transport->packed_capacity = bound_bytes;
    }
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size_bytes;
    stream.next_out = transport->packed;
    stream.avail_out = (uInt)transport->packed_capacity;
    int r = deflate(&stream, Z_FINISH);
    size_t packed_bytes = stream.total_out;
    (void)deflateEnd(&stream);
    return r == Z_STREAM_END ? packed_bytes : 0;
}

/* What it means that no answer came. */
static void read_failure(struct transport *transport, CURLcode code, struct answer *ret)
{
    switch ((int)code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        ret->kind = ANSWER_REFUSED;
        break;
    default:
        ret->kind = ANSWER_LATER;
    }
    ret->is_unsure = ret->kind == ANSWER_LATER && transport->sent_at == transport->sent_bytes;
    (void)snprintf(ret->text, sizeof ret->text, "%s",
                   transport->error[0] != '\0' ? transport->error
                                               : transport->calls.error_text(code));
}

int transport_post(struct transport *transport, const uint8_t *bytes, size_t size_bytes,
                   struct answer *ret)
{
    struct http_answer http = {.body = transport->body};
    curl_off_t wait_s = 0;
    size_t packed_bytes = transport->is_plain ? size_bytes : pack(transport, bytes, size_bytes);
    *ret = (struct answer){.sent_bytes = packed_bytes};
    transport->body_bytes = 0;
    transport->is_cut = false;
    transport->error[0] = '\0';
    transport->sent = transport->is_plain ? bytes : transport->packed;
    transport->sent_bytes = packed_bytes;
    transport->sent_at = 0;
    if (packed_bytes == 0 || transport->calls.set(transport->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                                                  (curl_off_t)packed_bytes) != CURLE_OK) {
        return -ENOMEM;
    }
    CURLcode code = transport->calls.perform(transport->curl);
    transport->body[transport->body_bytes] = '\0';
    if (code == CURLE_OUT_OF_MEMORY) {
        return -ENOMEM;
    }
    if (code != CURLE_OK) {
        read_failure(transport, code, ret);
    } else {
        (void)transport->calls.get(transport->curl, CURLINFO_RESPONSE_CODE, &http.status);
        (void)transport->calls.get(transport->curl, CURLINFO_CONTENT_TYPE, &http.type);
        (void)transport->calls.get(transport->curl, CURLINFO_RETRY_AFTER, &wait_s);
        http.body_bytes = transport->body_bytes;
        http.is_cut = transport->is_cut;
        answer_read(&http, &transport->file, ret);
        ret->wait_s = wait_s > 0 && wait_s < WAIT_S_MAX ? (uint64_t)wait_s
                      : wait_s > 0                      ? WAIT_S_MAX
                                                        : 0;
    }
    header_file_hide(&transport->file, ret->text, sizeof ret->text);
    return 0;
}
