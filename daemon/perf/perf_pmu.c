/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads what the kernel says of its counting devices. A term's value goes into the bits of a word
 * that the device's format names for it ("config:0-7,21"). Only the kernel writes below /sys, and a
 * name was checked by event_names: letters, digits and _-=,. without a slash, so no path leaves the
 * device's folder.
 */
#include "perf_pmu.h"

#include "cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 256
#define TERMS_MAX  16
#define BITS       64

/* Devices whose counters follow what a processor runs. The terms of others may be addresses in the
 * memory of the process that opens the event (kprobe, uprobe) or of the kernel (breakpoint). */
static const char *const processor_devices[] = {"cpu", "cpu_core", "cpu_atom", "ibs_op",
                                                "ibs_fetch"};
static const char arm_prefix[] = "armv8_";

struct pmu {
    const char *root;
    char name[TEXT_BYTES];
    const char *event; /* for faults */
};

/* One line below the device's folder, without its end. */
static bool read_line(const struct pmu *pmu, const char *folder, const char *file, char *ret)
{
    char path[3 * TEXT_BYTES];
    if (strcmp(file, ".") == 0 || strcmp(file, "..") == 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/%s/%s%s", pmu->root, pmu->name, folder, file);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, ret, TEXT_BYTES - 1);
    if (bytes <= 0) {
        return false;
    }
    ret[bytes] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

/* The next bits of a list such as "0-7,21"; `*at` goes on behind them. */
static bool take_bits(const char **at, unsigned *first, unsigned *last)
{
    char *end = NULL;
    unsigned long from = strtoul(*at, &end, 10);
    unsigned long to = from;
    if (end == *at) {
        return false;
    }
    if (*end == '-') {
        const char *second = end + 1;
        to = strtoul(second, &end, 10);
        if (end == second) {
            return false;
        }
    }
    *at = *end == ',' ? end + 1 : end;
    *first = (unsigned)from;
    *last = (unsigned)to;
    return from <= to && to < BITS;
}

/* Puts a value into the bits of a word, lowest first. False where it does not fit. */
static bool put_value(const char *bits, uint64_t value, uint64_t *word)
{
    while (*bits != '\0') {
        unsigned first = 0;
        unsigned last = 0;
        if (!take_bits(&bits, &first, &last)) {
            return false;
        }
        for (unsigned bit = first; bit <= last; bit++) {
            *word = (*word & ~(UINT64_C(1) << bit)) | (value & 1) << bit;
            value >>= 1;
        }
    }
    return value == 0;
}

static int refuse_term(const struct pmu *pmu, const char *term, const char *why,
                       struct fault *reterr)
{
    return fault_set_member(reterr, "events", "'%s': '%s' %s (%s/%s/format and events)", pmu->event,
                            term, why, pmu->root, pmu->name);
}

/* "umask=0x01", or "edge", which is "edge=1". */
static int set_term(const struct pmu *pmu, const char *key, const char *value_text,
                    struct event_code *code, struct fault *reterr)
{
    char format[TEXT_BYTES];
    char *end = NULL;
    uint64_t value = value_text == NULL ? 1 : strtoull(value_text, &end, 0);
    if (value_text != NULL && (end == value_text || *end != '\0')) {
        return refuse_term(pmu, key, "has a value that is no number", reterr);
    }
    uint64_t *word = NULL;
    if (!read_line(pmu, "format/", key, format)) {
        word = strcmp(key, "config") == 0    ? &code->config
               : strcmp(key, "config1") == 0 ? &code->config1
               : strcmp(key, "config2") == 0 ? &code->config2
                                             : NULL;
        if (word == NULL) {
            return refuse_term(pmu, key, "is no term of that device", reterr);
        }
        *word = value;
        return 0;
    }
    char *colon = strchr(format, ':');
    if (colon != NULL) {
        *colon = '\0';
        word = strcmp(format, "config") == 0    ? &code->config
               : strcmp(format, "config1") == 0 ? &code->config1
               : strcmp(format, "config2") == 0 ? &code->config2
                                                : NULL;
    }
    if (word == NULL) {
        return refuse_term(pmu, key, "has a format that is not known here", reterr);
    }
    return put_value(colon + 1, value, word)
               ? 0
               : refuse_term(pmu, key, "has a value that does not fit", reterr);
}

static int set_terms(const struct pmu *pmu, char *terms, bool may_name_event,
                     struct event_code *code, struct fault *reterr)
{
    char *rest = NULL;
    size_t count = 0;
    int r = 0;
    for (char *term = strtok_r(terms, ",", &rest); term != NULL && r == 0;
         term = strtok_r(NULL, ",", &rest)) {
        char line[TEXT_BYTES];
        char *equals = strchr(term, '=');
        if (++count > TERMS_MAX) {
            return refuse_term(pmu, term, "is one term too many", reterr);
        }
        if (equals == NULL && may_name_event && read_line(pmu, "events/", term, line)) {
            r = set_terms(pmu, line, false, code, reterr);
            continue;
        }
        if (equals != NULL) {
            *equals = '\0';
        }
        r = set_term(pmu, term, equals == NULL ? NULL : equals + 1, code, reterr);
    }
    return r;
}

static bool is_processor(const char *name)
{
    for (size_t i = 0; i < sizeof processor_devices / sizeof processor_devices[0]; i++) {
        if (strcmp(name, processor_devices[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, arm_prefix, sizeof arm_prefix - 1) == 0;
}

int perf_pmu_find(const char *root, const char *name, struct event_code *code, struct fault *reterr)
{
    char terms[TEXT_BYTES];
    char line[TEXT_BYTES];
    struct pmu pmu = {.root = root, .event = name};
    const char *slash = strchr(name, '/');
    const char *end = strrchr(name, '/');
    if (slash == NULL || end == slash || (size_t)(slash - name) >= sizeof pmu.name ||
        (size_t)(end - slash) > sizeof terms) {
        return fault_set_member(reterr, "events", "'%s' is no event of a device", name);
    }
    memcpy(pmu.name, name, (size_t)(slash - name));
    memcpy(terms, slash + 1, (size_t)(end - slash - 1));
    terms[end - slash - 1] = '\0';
    if (!is_processor(pmu.name)) {
        return fault_set_member(reterr, "events",
                                "'%s': '%s' is no processor's device; cpu, cpu_core, cpu_atom, "
                                "ibs_op, ibs_fetch and armv8_* are",
                                name, pmu.name);
    }
    if (!read_line(&pmu, "", "type", line)) {
        return fault_set_member(
            reterr, "events",
            "'%s': there is no device '%s' on this machine (%s has those that are)", name, pmu.name,
            root);
    }
    code->type = strtol(line, NULL, 10);
    return set_terms(&pmu, terms, true, code, reterr);
}

/* "mem-loads", and not "mem-loads.unit", which says how a count is to be read. */
static bool is_event_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strchr(entry->d_name, '.') == NULL;
}

/* Adds the events of one device. */
static size_t list_device(const char *root, const char *device, char (*names)[PERF_PMU_NAME_BYTES],
                          size_t capacity)
{
    char path[2 * TEXT_BYTES];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/%s/events", root, device);
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;
    while (folder != NULL && count < capacity && (entry = readdir(folder)) != NULL) {
        int bytes = is_event_file(entry) ? snprintf(names[count], PERF_PMU_NAME_BYTES, "%s/%s/",
                                                    device, entry->d_name)
                                         : -1;
        count += bytes > 0 && bytes < PERF_PMU_NAME_BYTES;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

size_t perf_pmu_list(const char *root, char (*names)[PERF_PMU_NAME_BYTES], size_t capacity)
{
    DIR *folder = opendir(root);
    const struct dirent *entry = NULL;
    size_t count = 0;
    while (folder != NULL && count < capacity && (entry = readdir(folder)) != NULL) {
        if (is_processor(entry->d_name)) {
            count += list_device(root, entry->d_name, names + count, capacity - count);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    qsort(names, count, sizeof names[0], compare_names);
    return count;
}
