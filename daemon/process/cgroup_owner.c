/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goes through the components of a path once. Outside of containers the rule is systemd's own: the
 * first component that is no slice is the unit, or there is none; below a user's manager the same
 * holds for the user's unit. A component that names a container begins the search anew, since a
 * container may have a systemd of its own. The innermost container counts.
 */
#include "cgroup_owner.h"

#include <stdbool.h>
#include <string.h>

#define ID_DIGITS     64 /* of a container */
#define POD_DIGITS    32 /* of a pod's uid, beside its dashes */
#define USER_MANAGER  "user@"
#define NSPAWN        "systemd-nspawn@"
#define LXC_PAYLOAD   "lxc.payload."
#define SLICE         ".slice"
#define SERVICE       ".service"
#define KUBEPODS      "kubepods"
#define IN_CONTAINERD ":cri-containerd:"

struct walk {
    struct cgroup_owner *owner;
    struct cgroup_part before; /* the component above */
    bool is_unit_open;         /* the unit may be among the components that come */
    bool is_user_unit_open;    /* the same of the user's */
    bool is_below_nspawn;      /* directly */
};

static bool equals(struct cgroup_part part, const char *text)
{
    return part.bytes == strlen(text) && memcmp(part.text, text, part.bytes) == 0;
}

static bool begins(struct cgroup_part part, const char *text)
{
    size_t bytes = strlen(text);
    return part.bytes > bytes && memcmp(part.text, text, bytes) == 0;
}

static bool ends(struct cgroup_part part, const char *text)
{
    size_t bytes = strlen(text);
    return part.bytes > bytes && memcmp(part.text + part.bytes - bytes, text, bytes) == 0;
}

static struct cgroup_part without(struct cgroup_part part, size_t front_bytes, size_t back_bytes)
{
    return (struct cgroup_part){part.text + front_bytes, part.bytes - front_bytes - back_bytes};
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_id(struct cgroup_part part)
{
    if (part.bytes != ID_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < part.bytes; i++) {
        if (!is_hex(part.text[i])) {
            return false;
        }
    }
    return true;
}

/* systemd puts an underscore before a name that could be one of the kernel's own files. */
static struct cgroup_part unescaped(struct cgroup_part part)
{
    return part.bytes > 1 && part.text[0] == '_' ? without(part, 1, 0) : part;
}

static bool is_slice(struct cgroup_part part)
{
    return ends(unescaped(part), SLICE);
}

/* Whether it is the name of a unit of a kind that has processes. */
static bool is_unit(struct cgroup_part part)
{
    static const char *const kinds[] = {SERVICE, ".scope", ".socket", ".mount", ".swap"};
    static const char signs[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                ":-_.\\@";
    bool is_known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        is_known = is_known || ends(part, kinds[i]);
    }
    for (size_t i = 0; is_known && i < part.bytes; i++) {
        is_known = memchr(signs, part.text[i], sizeof signs - 1) != NULL;
    }
    return is_known;
}

/* `HEAD-ID.scope`, or without its end as a runtime that does not ask systemd makes it. */
static bool find_runtime(struct cgroup_part part, struct cgroup_owner *owner)
{
    static const struct {
        const char *head;
        const char *runtime;
    } known[] = {
        {"docker-", "docker"},      {"libpod-", "podman"},
        {"crio-", "cri-o"},         {"cri-containerd-", "containerd"},
        {"nerdctl-", "containerd"},
    };
    struct cgroup_part name = ends(part, ".scope") ? without(part, 0, strlen(".scope")) : part;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (begins(name, known[i].head) && is_id(without(name, strlen(known[i].head), 0))) {
            owner->container = without(name, strlen(known[i].head), 0);
            owner->runtime = known[i].runtime;
            return true;
        }
    }
    return false;
}

/* Whether a component names a container, which `owner` then has. */
static bool find_container(const struct walk *walk, struct cgroup_part part,
                           struct cgroup_owner *owner)
{
    size_t mark_bytes = strlen(IN_CONTAINERD);
    struct cgroup_part tail =
        part.bytes < ID_DIGITS ? part : without(part, part.bytes - ID_DIGITS, 0);
    if (is_id(part)) {
        owner->container = part;
        owner->runtime = equals(walk->before, "docker") ? "docker" : NULL;
        return true;
    }
    if (part.bytes > ID_DIGITS + mark_bytes && is_id(tail) &&
        memcmp(tail.text - mark_bytes, IN_CONTAINERD, mark_bytes) == 0) {
        owner->container = tail;
        owner->runtime = "containerd";
        return true;
    }
    if (begins(part, LXC_PAYLOAD)) {
        owner->container = without(part, strlen(LXC_PAYLOAD), 0);
        owner->runtime = "lxc";
        return true;
    }
    if (begins(part, NSPAWN) && ends(part, SERVICE) && is_unit(part) &&
        part.bytes > strlen(NSPAWN SERVICE)) {
        owner->container = without(part, strlen(NSPAWN), strlen(SERVICE));
        owner->runtime = "systemd-nspawn";
        return true;
    }
    return find_runtime(part, owner);
}

/* The name of a slice from kubelet's own part on, before which the parts of the slices stand in
 * which kubelet was told to make its own; nothing when the slice is not kubelet's. */
static struct cgroup_part from_kubepods(struct cgroup_part name)
{
    const char *at = memmem(name.text, name.bytes, "-" KUBEPODS, strlen("-" KUBEPODS));
    if (begins(name, KUBEPODS)) {
        return name;
    }
    return at == NULL ? (struct cgroup_part){0} : without(name, (size_t)(at + 1 - name.text), 0);
}

/* The uid of a pod stands behind "pod"; in the name of a slice it has underscores for dashes. */
static bool find_pod(struct cgroup_part part, struct cgroup_owner *owner)
{
    struct cgroup_part name = part;
    const char *colon = memchr(part.text, ':', part.bytes);
    if (colon != NULL) {
        name.bytes = (size_t)(colon - part.text);
    }
    if (ends(name, SLICE)) {
        name = from_kubepods(without(name, 0, strlen(SLICE)));
        while (name.bytes > 0 && !begins(name, "-pod")) {
            name = without(name, 1, 0);
        }
        name = name.bytes == 0 ? name : without(name, 1, 0);
    }
    if (!begins(name, "pod") || name.bytes - 3 >= sizeof owner->pod) {
        return false;
    }
    char uid[CGROUP_POD_BYTES] = "";
    size_t digits = 0;
    name = without(name, 3, 0);
    for (size_t i = 0; i < name.bytes; i++) {
        bool is_dash = name.text[i] == '_' || name.text[i] == '-';
        if (!is_dash && !is_hex(name.text[i])) {
            return false;
        }
        digits += !is_dash;
        uid[i] = is_dash ? '-' : name.text[i];
    }
    if (digits != POD_DIGITS) {
        return false;
    }
    memcpy(owner->pod, uid, sizeof uid);
    return true;
}

static bool is_user_manager(struct cgroup_part unit)
{
    return begins(unit, USER_MANAGER) && ends(unit, SERVICE);
}

/* Takes a component that names a container: what was found above it is of the machine outside. But
 * a user's containers, and what is in them, stay the user's: he can call them as he likes. */
static void enter_container(struct walk *walk, struct cgroup_part part)
{
    struct cgroup_part unit = is_unit(part) ? part : (struct cgroup_part){0};
    bool is_users = is_user_manager(walk->owner->unit);
    walk->owner->unit = is_users ? walk->owner->unit : unit;
    walk->owner->user_unit = is_users ? unit : (struct cgroup_part){0};
    walk->is_unit_open = !is_users;
    walk->is_user_unit_open = is_users;
    walk->is_below_nspawn = begins(part, NSPAWN);
}

/* Takes any other component. Returns whether it tells something. */
static bool take_unit(struct walk *walk, struct cgroup_part part)
{
    struct cgroup_part name = unescaped(part);
    if (is_slice(part)) {
        return false;
    }
    if (walk->is_user_unit_open) {
        walk->is_user_unit_open = false;
        if (is_unit(name)) {
            walk->owner->user_unit = name;
        }
        return is_unit(name);
    }
    if (!walk->is_unit_open) {
        return false;
    }
    walk->is_unit_open = false;
    if (!is_unit(name)) {
        return false;
    }
    walk->owner->unit = name;
    walk->is_user_unit_open = is_user_manager(name);
    return true;
}

static bool take_component(struct walk *walk, struct cgroup_part part)
{
    bool was_below_nspawn = walk->is_below_nspawn;
    walk->is_below_nspawn = false;
    if (find_container(walk, part, walk->owner)) {
        (void)find_pod(part, walk->owner);
        enter_container(walk, part);
        return true;
    }
    if (was_below_nspawn && equals(part, "supervisor")) {
        walk->owner->container = (struct cgroup_part){0};
        walk->owner->runtime = NULL;
        walk->is_unit_open = false;
        walk->is_user_unit_open = false;
        return true;
    }
    if (was_below_nspawn && equals(part, "payload")) {
        return true;
    }
    return find_pod(part, walk->owner) || take_unit(walk, part);
}

void cgroup_owner_parse(const char *path, struct cgroup_owner *ret)
{
    struct walk walk = {.owner = ret, .is_unit_open = true};
    *ret = (struct cgroup_owner){0};
    const char *at = path;
    while (*at != '\0') {
        at += strspn(at, "/");
        struct cgroup_part part = {at, strcspn(at, "/")};
        at += part.bytes;
        if (part.bytes > 0 && take_component(&walk, part)) {
            ret->prefix_bytes = (size_t)(at - path);
        }
        walk.before = part;
    }
}
