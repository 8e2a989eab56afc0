/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A path of a control group: what is told lies in it, before the end of the prefix. The prefix
 * alone tells the same; so does the path with slashes doubled, or with a component that means
 * nothing at its end. Below a container, units and pods are found as on the machine.
 */
#include "cgroup_owner.h"
#include "fuzz_target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)8192)
#define CONTAINER "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_same(struct cgroup_part a, struct cgroup_part b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.text, b.text, a.bytes) == 0);
}

static bool have_same_units(const struct cgroup_owner *a, const struct cgroup_owner *b)
{
    return is_same(a->unit, b->unit) && is_same(a->user_unit, b->user_unit) &&
           strcmp(a->pod, b->pod) == 0;
}

static bool are_same(const struct cgroup_owner *a, const struct cgroup_owner *b)
{
    return have_same_units(a, b) && is_same(a->container, b->container) && a->runtime == b->runtime;
}

static void require_inside(struct cgroup_part part, const char *path, size_t prefix_bytes)
{
    require(part.bytes == 0 || (part.text > path && part.bytes < prefix_bytes &&
                                part.text + part.bytes <= path + prefix_bytes));
}

static void check_parts(const char *path, const struct cgroup_owner *owner)
{
    require(memchr(owner->pod, '\0', sizeof owner->pod) != NULL);
    require(owner->prefix_bytes <= strlen(path));
    require_inside(owner->unit, path, owner->prefix_bytes);
    require_inside(owner->user_unit, path, owner->prefix_bytes);
    require_inside(owner->container, path, owner->prefix_bytes);
    require(owner->runtime == NULL || owner->container.bytes > 0);
    require(owner->user_unit.bytes == 0 || owner->unit.bytes > 0);
}

static void check_variants(const char *path, const struct cgroup_owner *owner)
{
    static char variant[2 * BYTES_MAX + sizeof CONTAINER];
    struct cgroup_owner other;
    (void)snprintf(variant, sizeof variant, "%.*s", (int)owner->prefix_bytes, path);
    cgroup_owner_parse(variant, &other);
    require(are_same(owner, &other) && other.prefix_bytes == owner->prefix_bytes);

    (void)snprintf(variant, sizeof variant, "%s/x", path);
    cgroup_owner_parse(variant, &other);
    require(are_same(owner, &other) && other.prefix_bytes == owner->prefix_bytes);

    (void)snprintf(variant, sizeof variant, CONTAINER "%s", path);
    cgroup_owner_parse(variant, &other);
    require(have_same_units(owner, &other));
    require(owner->container.bytes == 0 || is_same(owner->container, other.container));

    char *at = variant;
    for (const char *c = path; *c != '\0'; c++) {
        *at++ = *c;
        if (*c == '/') {
            *at++ = '/';
        }
    }
    *at = '\0';
    cgroup_owner_parse(variant, &other);
    require(are_same(owner, &other));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct cgroup_owner owner;
    /* In memory of exactly that size, so that a sanitizer sees a step outside. */
    char *path = size > BYTES_MAX ? NULL : malloc(size + 2);
    if (path == NULL) {
        return 0;
    }
    path[0] = '/';
    memcpy(path + 1, bytes, size);
    path[size + 1] = '\0';
    cgroup_owner_parse(path, &owner);
    check_parts(path, &owner);
    check_variants(path, &owner);
    free(path);
    return 0;
}
