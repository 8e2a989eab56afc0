/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose processes a control group holds, as its path says: by the names that systemd gives to
 * units, and that container runtimes and kubelet give to containers and pods. Pure. A path is
 * text that any user may have chosen who can make control groups; nothing that it names is opened.
 */

#include <stddef.h>

#define CGROUP_POD_BYTES 40

/* A part of the path; 0 bytes: it is not known. */
struct cgroup_part {
    const char *text;
    size_t bytes;
};

struct cgroup_owner {
    struct cgroup_part unit;      /* of systemd; of a container the one inside or, without any, the
                                     scope that the container is */
    struct cgroup_part user_unit; /* of a user's own manager, which is `unit`; of a container below
                                     that as the unit of others */
    struct cgroup_part container; /* its id, or where it has none its name */
    const char *runtime;          /* of the container; static; NULL: the path does not tell */
    char pod[CGROUP_POD_BYTES];   /* the uid of the pod; "": none */
    size_t prefix_bytes;          /* of the path, up to the last part that told something, or 0:
                                     control groups with an equal prefix have one owner */
};

/* `path` is borrowed for as long as `ret` is used, and begins with a slash. */
void cgroup_owner_parse(const char *path, struct cgroup_owner *ret);
