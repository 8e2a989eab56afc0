/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Demangles names with libiberty, within bounds, since names are foreign. libiberty bounds its
 * recursion, but not its output: a name can refer to its own parts, and each reference to a part
 * with references doubles the output. So it passes its output on in pieces; after too many bytes a
 * longjmp leaves it. Its allocations are lost then, at most a few pages for each of a few names.
 */
#include "demangle.h"

#include "utf8.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#define EXPLODED_MAX 64
#define SUFFIX       "@plt"

struct output {
    char text[DEMANGLED_BYTES_MAX];
    size_t used;
    jmp_buf too_long;
};

static void on_piece(const char *text, size_t bytes, void *userdata)
{
    struct output *output = userdata;
    if (bytes > sizeof output->text - output->used) {
        longjmp(output->too_long, 1);
    }
    if (bytes > 0) { /* a piece of no bytes has no text */
        memcpy(output->text + output->used, text, bytes);
    }
    output->used += bytes;
}

/* Whether libiberty knows the name; its readable form is in `output` then. */
static bool decode(const char *name, struct output *output)
{
    if (rust_demangle_callback(name, DMGL_NO_OPTS, on_piece, output) != 0) {
        return true;
    }
    output->used = 0;
    return name[1] == 'Z' && cplus_demangle_v3_callback(name, DMGL_NO_OPTS, on_piece, output) != 0;
}

enum decoding {
    NAME_UNKNOWN,
    NAME_READABLE,
    NAME_TOO_LONG,
};

/* Puts the readable form and `suffix` into `output`. A longjmp comes back here, where it finds no
 * variable that it could make wrong; in a caller, which is why this is not inlined, it might. */
static __attribute__((noinline)) enum decoding
decode_within_bounds(const char *name, const char *suffix, struct output *output)
{
    if (setjmp(output->too_long) != 0) {
        return NAME_TOO_LONG;
    }
    if (!decode(name, output) || output->used == 0) {
        return NAME_UNKNOWN;
    }
    on_piece(suffix, strlen(suffix), output);
    return NAME_READABLE;
}

/* Of what stays as it is at the end of a name. */
static size_t suffix_bytes(const char *name, size_t bytes)
{
    size_t count = strlen(SUFFIX);
    return bytes > count && strcmp(name + bytes - count, SUFFIX) == 0 ? count : 0;
}

bool demangle_name(struct demangler *demangler, const char *name, char *ret)
{
    bool is_mangled = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
    size_t bytes = strlen(name);
    char encoded[DEMANGLED_BYTES_MAX];
    if (!is_mangled || bytes >= sizeof encoded || demangler->exploded_count >= EXPLODED_MAX) {
        return false;
    }
    size_t kept_bytes = bytes - suffix_bytes(name, bytes);
    memcpy(encoded, name, kept_bytes);
    encoded[kept_bytes] = '\0';

    struct output output;
    output.used = 0;
    enum decoding decoding = decode_within_bounds(encoded, name + kept_bytes, &output);
    demangler->exploded_count += decoding == NAME_TOO_LONG;
    if (decoding == NAME_READABLE) {
        (void)utf8_clean(ret, DEMANGLED_BYTES_MAX, output.text, output.used);
    }
    return decoding == NAME_READABLE;
}

int demangle_add(struct demangler *demangler, struct intern *texts, const char *name,
                 uint32_t *ret_text)
{
    char readable[DEMANGLED_BYTES_MAX];
    if (!demangler->keeps_mangled && demangle_name(demangler, name, readable)) {
        name = readable;
    }
    return intern_add(texts, name, strlen(name), ret_text);
}
