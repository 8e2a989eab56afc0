/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes heads, the event and features of perf.data. A feature is a number and bytes; both kinds of
 * output have the same ones, in the order of their numbers. Build-ids are records of their own kind
 * of record in a pipe, and such records without a kind in a file's feature.
 */
#include "perf_header.h"

#include "build_id_bytes.h"
#include "cleanup.h"
#include "json.h"
#include "perf_records.h"
#include "utf8.h"

#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#define STRING_BYTES         ((size_t)64) /* strings of features fill such pieces */
#define FEATURE_MAX          7
#define BUILD_ID_BYTES       ((size_t)20)
#define MISC_BUILD_ID_SIZE   (1U << 15) /* the build-id says how long it is */
#define KERNEL_PID           UINT32_MAX /* whose build-ids: this machine's */
#define RECORD_ATTRIBUTE     64
#define RECORD_BUILD_ID      67
#define RECORD_FEATURE       80
#define RECORD_BUILD_ID_FILE 0

/* Numbers of features in the head's bit map. */
enum {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOST_NAME = 3,
    FEATURE_KERNEL = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_EVENT_DESC = 12,
    FEATURE_SAMPLE_TIME = 21,
    FEATURE_CLOCK_DATA = 29
};

struct file_section {
    uint64_t offset;
    uint64_t size_bytes;
};

struct file_head {
    char magic[8];
    uint64_t size_bytes;
    uint64_t attribute_bytes;
    struct file_section attributes;
    struct file_section data;
    struct file_section event_types;
    uint64_t features[4];
};

struct pipe_head {
    char magic[8];
    uint64_t size_bytes;
};

struct file_attribute {
    struct perf_event_attr attribute;
    struct file_section ids;
};

struct feature {
    unsigned number;
    size_t size_bytes;
    uint8_t bytes[sizeof(struct perf_event_attr) + 2 * STRING_BYTES];
};

/* The list of events, of which there is one. hotspot knows the event of samples by nothing else. */
struct event_list {
    uint32_t event_count;
    uint32_t attribute_bytes;
    struct perf_event_attr attribute;
    uint32_t id_count;
    uint32_t name_bytes;
    char name[STRING_BYTES];
};

/* Writes the build-ids of all modules that are files and have one; returns their bytes. */
static uint64_t write_build_ids(FILE *file, uint32_t type, const struct profile *profile)
{
    struct perf_records records = {.out = {.file = file}};
    for (size_t i = 0; i < profile->module_count; i++) {
        const char *name = profile_text(profile, profile->modules[i].name);
        uint8_t build_id[BUILD_ID_BYTES] = {0};
        uint8_t size_bytes = (uint8_t)build_id_bytes(
            profile_text(profile, profile->modules[i].build_id), build_id, sizeof build_id);
        const uint8_t tail[4] = {size_bytes};
        if (name[0] == '/' && size_bytes > 0) {
            perf_records_begin(&records, type, PERF_RECORD_MISC_USER | MISC_BUILD_ID_SIZE);
            perf_records_u32(&records, KERNEL_PID);
            perf_records_bytes(&records, build_id, sizeof build_id);
            perf_records_bytes(&records, tail, sizeof tail);
            perf_records_text(&records, name);
            perf_records_u32(&records, 0); /* up to a whole word */
            perf_records_end(&records);
        }
    }
    perf_records_flush(&records);
    return records.written_bytes;
}

static void add_text_feature(struct feature *features, size_t *count, unsigned number,
                             const char *text)
{
    struct feature *feature = &features[(*count)++];
    const uint32_t size_bytes = STRING_BYTES;
    *feature = (struct feature){.number = number, .size_bytes = sizeof size_bytes + STRING_BYTES};
    memcpy(feature->bytes, &size_bytes, sizeof size_bytes);
    (void)utf8_shown((char *)feature->bytes + sizeof size_bytes, STRING_BYTES, text, strlen(text));
}

static void add_feature(struct feature *features, size_t *count, unsigned number, const void *bytes,
                        size_t size_bytes)
{
    struct feature *feature = &features[(*count)++];
    *feature = (struct feature){.number = number, .size_bytes = size_bytes};
    memcpy(feature->bytes, bytes, size_bytes);
}

/*
 * An event that has no name in the kernel, as a wait, is what perf's own BPF programs write. One of
 * a device has numbers that only the recorded machine knows: it is a raw one, known by its name.
 */
void perf_header_take_event(const struct profile_event *event, uint64_t period,
                            struct perf_event *ret)
{
    struct event_code code = {.type = EVENT_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT};
    (void)profile_event_code(event, &code);
    *ret = (struct perf_event){
        .type = code.type == EVENT_OF_PMU ? PERF_TYPE_RAW : (uint32_t)code.type,
        .config = code.config,
        .period = period,
    };
    (void)export_event_name(event, ret->name);
}

static struct perf_event_attr make_attribute(const struct perf_event *event)
{
    return (struct perf_event_attr){
        .type = event->type,
        .size = sizeof(struct perf_event_attr),
        .config = event->config,
        .sample_period = event->period,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
                       (event->has_groups ? PERF_SAMPLE_CGROUP : 0),
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .ksymbol = 1,
        .build_id = 1,
        .cgroup = event->has_groups,
        .sample_id_all = 1,
        .exclude_guest = 1, /* readers show it in the name of the event where it is not */
        .use_clockid = 1,
        .clockid = CLOCK_BOOTTIME,
    };
}

/* What the recording says of where it was made, as texts that may be "": hotspot 1.3 takes no
 * feature of a file without a host's name. */
static void add_origin(const struct profile *profile, struct feature *features, size_t *count)
{
    cleanup_(json_freep) cJSON *session = cJSON_Parse(profile->session_json);
    const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "host"));
    const char *kernel = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "kernel"));
    add_text_feature(features, count, FEATURE_HOST_NAME, host == NULL ? "" : host);
    add_text_feature(features, count, FEATURE_KERNEL, kernel == NULL ? "" : kernel);
}

/* In the order of their numbers. Returns how many there are. */
static size_t make_features(const struct perf_event *event, const struct profile *profile,
                            struct feature *features)
{
    struct event_list events = {
        .event_count = 1,
        .attribute_bytes = sizeof events.attribute,
        .attribute = make_attribute(event),
        .name_bytes = sizeof events.name,
    };
    _Static_assert(sizeof events.name == sizeof event->name, "a name does not fit");
    memcpy(events.name, event->name, sizeof events.name);
    size_t count = 0;
    int64_t offset_ns = 0;
    const uint64_t times[2] = {profile->first_ns, profile->last_ns};
    add_origin(profile, features, &count);
    add_text_feature(features, &count, FEATURE_VERSION, "cpu-profilerd " CPU_PROFILERD_VERSION);
    add_text_feature(features, &count, FEATURE_ARCH, "x86_64");
    add_feature(features, &count, FEATURE_EVENT_DESC, &events, sizeof events);
    add_feature(features, &count, FEATURE_SAMPLE_TIME, times, sizeof times);
    if (profile_wall_offset_ns(profile, &offset_ns)) {
        const struct {
            uint32_t version;
            uint32_t clock;
            uint64_t wall_ns;
            uint64_t time_ns;
        } clock = {1, CLOCK_BOOTTIME, profile->first_ns + (uint64_t)offset_ns, profile->first_ns};
        add_feature(features, &count, FEATURE_CLOCK_DATA, &clock, sizeof clock);
    }
    return count;
}

void perf_header_begin_file(FILE *file, const struct perf_event *event, uint64_t data_bytes,
                            const struct profile *profile)
{
    struct feature features[FEATURE_MAX];
    size_t feature_count = make_features(event, profile, features);
    const struct file_attribute attribute = {.attribute = make_attribute(event)};
    struct file_head head = {
        .magic = "PERFILE2",
        .size_bytes = sizeof head,
        .attribute_bytes = sizeof attribute,
        .attributes = {sizeof head, sizeof attribute},
        .data = {sizeof head + sizeof attribute, data_bytes},
        .features = {UINT64_C(1) << FEATURE_BUILD_ID},
    };
    for (size_t i = 0; i < feature_count; i++) {
        head.features[0] |= UINT64_C(1) << features[i].number;
    }
    (void)fwrite(&head, 1, sizeof head, file);
    (void)fwrite(&attribute, 1, sizeof attribute, file);
}

/* Their places, behind the data, and then they themselves. */
void perf_header_end_file(FILE *file, const struct perf_event *event, uint64_t data_bytes,
                          const struct profile *profile)
{
    struct feature features[FEATURE_MAX];
    size_t count = make_features(event, profile, features);
    struct file_section section = {
        .offset = sizeof(struct file_head) + sizeof(struct file_attribute) + data_bytes +
                  (1 + count) * sizeof section,
        .size_bytes = write_build_ids(NULL, RECORD_BUILD_ID_FILE, profile),
    };
    (void)fwrite(&section, 1, sizeof section, file);
    for (size_t i = 0; i < count; i++) {
        section.offset += section.size_bytes;
        section.size_bytes = features[i].size_bytes;
        (void)fwrite(&section, 1, sizeof section, file);
    }
    (void)write_build_ids(file, RECORD_BUILD_ID_FILE, profile);
    for (size_t i = 0; i < count; i++) {
        (void)fwrite(features[i].bytes, 1, features[i].size_bytes, file);
    }
}

void perf_header_begin_pipe(FILE *file, const struct perf_event *event,
                            const struct profile *profile)
{
    struct feature features[FEATURE_MAX];
    size_t count = make_features(event, profile, features);
    const struct perf_event_attr attribute = make_attribute(event);
    const struct pipe_head head = {.magic = "PERFILE2", .size_bytes = sizeof head};
    struct perf_records records = {.out = {.file = file}};
    (void)fwrite(&head, 1, sizeof head, file);
    perf_records_begin(&records, RECORD_ATTRIBUTE, 0);
    perf_records_bytes(&records, &attribute, sizeof attribute);
    perf_records_end(&records);
    for (size_t i = 0; i < count; i++) {
        perf_records_begin(&records, RECORD_FEATURE, 0);
        perf_records_u64(&records, features[i].number);
        perf_records_bytes(&records, features[i].bytes, features[i].size_bytes);
        perf_records_end(&records);
    }
    perf_records_flush(&records);
    (void)write_build_ids(file, RECORD_BUILD_ID, profile);
}
