/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes requests in memory. Samples are taken in the order of time until a window, a profile or the
 * request is full. A request has a dictionary of its own, with what its samples need. What is
 * nested is made first, since its length stands before it. A profile's id depends on what is in it,
 * so a store can tell one that it was sent twice.
 */
#include "otlp_request.h"

#include "cleanup.h"
#include "compare.h"
#include "extremes.h"
#include "grow.h"
#include "otlp_dictionary.h"
#include "otlp_resource.h"
#include "sample_order.h"

#include <inttypes.h>
#include <otlp.pb-c.h>
#include <string.h>

#define ATTRIBUTES_MAX    5
#define PROFILE_ID_BYTES  16
#define CONTAINER_DIGITS  12 /* of its id, in the name of a service */
#define UNIT_ENDING       ".service"
#define SERVICE_BYTES_MAX ((size_t)256)

/* What tells services apart: texts of the profile, or INTERN_NONE. */
struct service {
    uint32_t host;
    uint32_t unit;
    uint32_t user_unit;
    uint32_t container;
    uint32_t runtime;
    uint32_t pod;
    uint32_t process_name; /* where none of these is known */
    uint32_t is_kernel;
};

/* What a sample has. Samples that differ in time and value only are one. */
struct row {
    uint32_t service;
    int32_t stack;
    int32_t attributes[ATTRIBUTES_MAX]; /* 0 behind the last */
    uint64_t time_ns;
    uint64_t value; /* what it stands for */
};

struct otlp_requests {
    const struct profile *profile; /* borrowed */
    struct otlp_limits limits;
    uint32_t *order;        /* owned; the samples by time */
    struct intern services; /* struct service */
    uint32_t *service_of;   /* owned; by task: the service + 1 */
    size_t *counts;         /* owned; by service: samples of the request at hand */
    int64_t wall_offset_ns;
    uint64_t period; /* in units of its type; 0: not known, or there is none */
};

/* The request at hand. */
struct building {
    const struct otlp_requests *requests;
    struct otlp_dictionary dictionary;
    struct otlp_books books; /* in the last request of an event only */
    struct row *rows;        /* owned; sorted */
    size_t count;
    size_t position;
    struct otlp_request *request;
};

/* A message in memory. */
struct piece {
    struct message_out out;
    char *bytes; /* owned, once piece_end() has been called */
    size_t size_bytes;
};

static void building_done(struct building *building)
{
    otlp_dictionary_done(&building->dictionary);
    free(building->rows);
}

static void piece_done(struct piece *piece)
{
    if (piece->out.file != NULL) {
        (void)fclose(piece->out.file);
    }
    message_out_done(&piece->out);
    free(piece->bytes);
}

static int piece_begin(struct piece *piece)
{
    piece->out.file = open_memstream(&piece->bytes, &piece->size_bytes);
    return piece->out.file == NULL ? -ENOMEM : 0;
}

static int piece_end(struct piece *piece)
{
    int r = fclose(piece->out.file);
    piece->out.file = NULL;
    return r == 0 ? 0 : -ENOMEM;
}

/* Writes a piece that has ended as a field of another. */
static void embed(struct message_out *out, uint32_t field, const struct piece *piece)
{
    message_out_begin(out, field, piece->size_bytes);
    message_out_bytes(out, (const uint8_t *)piece->bytes, piece->size_bytes);
}

static struct service describe(const struct profile *profile, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(profile, sample->task);
    const struct profile_owner *owner = profile_owner(profile, task->owner);
    struct service service = {
        .host = task->segment < profile->host_count ? profile->hosts[task->segment] : INTERN_NONE,
        .unit = owner->unit,
        .user_unit = owner->user_unit,
        .container = owner->container,
        .runtime = owner->runtime,
        .pod = owner->pod,
        .process_name = INTERN_NONE,
    };
    if (owner->unit == INTERN_NONE && owner->container == INTERN_NONE &&
        owner->user_unit == INTERN_NONE) {
        service.is_kernel = profile_is_kernel_thread(profile, sample);
        service.process_name = service.is_kernel ? INTERN_NONE : task->process_name;
    }
    return service;
}

/* Finds the service of each task that has samples. */
static int find_services(struct otlp_requests *requests)
{
    const struct profile *profile = requests->profile;
    requests->service_of = calloc(profile->tasks.item_count + 1, sizeof *requests->service_of);
    if (requests->service_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint32_t *number = &requests->service_of[profile->samples[i].task];
        if (*number == 0) {
            const struct service service = describe(profile, &profile->samples[i]);
            if (intern_add(&requests->services, &service, sizeof service, number) < 0) {
                return -ENOMEM;
            }
            (*number)++;
        }
    }
    requests->counts = calloc(requests->services.item_count + 1, sizeof *requests->counts);
    return requests->counts == NULL ? -ENOMEM : 0;
}

int otlp_requests_new(const struct profile *profile, const struct otlp_limits *limits,
                      struct otlp_requests **ret)
{
    cleanup_(otlp_requests_freep) struct otlp_requests *requests = calloc(1, sizeof *requests);
    if (requests == NULL) {
        return -ENOMEM;
    }
    requests->profile = profile;
    requests->limits = *limits;
    requests->period = otlp_period(profile);
    if (!profile_wall_offset_ns(profile, &requests->wall_offset_ns)) {
        return -ENODATA;
    }
    requests->order = sample_order(profile, SAMPLE_ORDER_TIME);
    if (requests->order == NULL || find_services(requests) < 0) {
        return -ENOMEM;
    }
    *ret = take_ptr(requests);
    return 0;
}

struct otlp_requests *otlp_requests_free(struct otlp_requests *requests)
{
    if (requests != NULL) {
        intern_done(&requests->services);
        free(requests->order);
        free(requests->service_of);
        free(requests->counts);
        free(requests);
    }
    return NULL;
}

void otlp_requests_freep(struct otlp_requests **requests)
{
    *requests = otlp_requests_free(*requests);
}

static const struct profile_sample *sample_at(const struct otlp_requests *requests, size_t position)
{
    return &requests->profile->samples[requests->order[position]];
}

static uint64_t wall_ns(const struct otlp_requests *requests, size_t position)
{
    return sample_at(requests, position)->time_ns + (uint64_t)requests->wall_offset_ns;
}

static uint32_t service_of(const struct otlp_requests *requests,
                           const struct profile_sample *sample)
{
    return requests->service_of[sample->task] - 1;
}

/* How many samples the request may have that begins at a position. */
static size_t count_samples(struct otlp_requests *requests, size_t position, size_t sample_max)
{
    const struct otlp_limits *limits = &requests->limits;
    size_t end = requests->profile->sample_count;
    uint64_t window = wall_ns(requests, position) / limits->window_ns;
    size_t count = 0;
    end = end - position < sample_max ? end : position + sample_max;
    memset(requests->counts, 0, (requests->services.item_count + 1) * sizeof *requests->counts);
    for (size_t i = position; i < end; i++, count++) {
        size_t *of_service = &requests->counts[service_of(requests, sample_at(requests, i))];
        if (wall_ns(requests, i) / limits->window_ns != window ||
            *of_service == limits->samples_max) {
            break;
        }
        (*of_service)++;
    }
    return count;
}

/* Adds a stack of too many frames, cut at the root's end. Returns its index. */
static int32_t add_cut_stack(struct building *building, const struct profile_sample *sample)
{
    struct otlp_dictionary *dictionary = &building->dictionary;
    struct locations *locations = &dictionary->locations;
    size_t frames_max = building->requests->limits.frames_max;
    size_t count = 0;
    size_t frames = 0;
    size_t kept = 0;
    const uint32_t *all = locations_list(locations, building->requests->profile, sample, &count);
    cleanup_(freep) uint32_t *left = calloc(count + 1, sizeof *left);
    uint32_t item = 0;
    if (all == NULL || left == NULL) {
        dictionary->fault = -ENOMEM;
        return 0;
    }
    for (size_t i = 0; i < count && frames < frames_max; i++) {
        size_t lines = 0;
        (void)locations_frames(locations, locations_at(locations, all[i]), &lines);
        frames += lines;
        kept += frames < frames_max;
    }
    memcpy(left, all, kept * sizeof *left);
    building->request->cut_count++;
    int r = locations_add_marker(locations, LOCATION_TRUNCATED, &left[kept]);
    r = r < 0 ? r : intern_add(&locations->stacks, left, (kept + 1) * sizeof *left, &item);
    dictionary->fault = r;
    return (int32_t)item + 1;
}

/* Adds a sample's stack, no longer than a store takes. Returns its index. */
static int32_t add_stack(struct building *building, const struct profile_sample *sample)
{
    size_t frames = 0;
    (void)profile_chain(building->requests->profile, sample->chain, &frames);
    frames += profile_rooted(sample) == PROFILE_STACK_TRUNCATED ? 1 : 0;
    return frames <= building->requests->limits.frames_max
               ? otlp_stack(&building->dictionary, sample)
               : add_cut_stack(building, sample);
}

/* What the request takes at least with so many samples: of each its time, and what tables have by
 * now; names come later. A stack of n locations has at most n / 2 + 1 words, and a header. */
static size_t bytes_min(const struct building *building, size_t sample_count)
{
    const struct locations *locations = &building->dictionary.locations;
    const struct intern *stacks = &locations->stacks;
    size_t times = building->requests->profile->values == NULL ? sample_count : 0;
    return sizeof(uint64_t) * (times + locations->items.item_count) +
           2 * (stacks->word_count - 2 * stacks->item_count);
}

static void add_attributes(struct building *building, const struct profile_sample *sample,
                           int32_t *attributes)
{
    const struct profile *profile = building->requests->profile;
    const struct profile_task *task = profile_task(profile, sample->task);
    struct otlp_dictionary *dictionary = &building->dictionary;
    enum otlp_detail detail = building->requests->limits.detail;
    if (detail == OTLP_DETAIL_SERVICE) {
        return;
    }
    *attributes++ = otlp_text_attribute(dictionary, "process.executable.name",
                                        profile_text(profile, task->process_name));
    if (task->pid != PROFILE_PID_OUTSIDE && task->pid <= INT64_MAX) {
        *attributes++ = otlp_number_attribute(dictionary, "process.pid", (int64_t)task->pid);
    }
    if (detail == OTLP_DETAIL_PROCESS) {
        return;
    }
    if (task->tid <= INT64_MAX) {
        *attributes++ = otlp_number_attribute(dictionary, "thread.id", (int64_t)task->tid);
    }
    if (task->thread_name != INTERN_NONE) {
        *attributes++ = otlp_text_attribute(dictionary, "thread.name",
                                            profile_text(profile, task->thread_name));
    }
    *attributes = otlp_number_attribute(dictionary, "cpu.logical_number", sample->cpu);
}

static int compare_samples(const struct row *a, const struct row *b)
{
    int r = compare_u64(a->service, b->service);
    for (size_t i = 0; i < ATTRIBUTES_MAX && r == 0; i++) {
        r = compare_u64((uint32_t)a->attributes[i], (uint32_t)b->attributes[i]);
    }
    return r == 0 ? compare_u64((uint32_t)a->stack, (uint32_t)b->stack) : r;
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    int r = compare_samples(a, b);
    return r == 0 ? compare_u64(a->time_ns, b->time_ns) : r;
}

static void add_row(struct building *building, const struct profile_sample *sample, struct row *row)
{
    const struct otlp_requests *requests = building->requests;
    row->service = service_of(requests, sample);
    row->time_ns = sample->time_ns + (uint64_t)requests->wall_offset_ns;
    row->value = profile_value_of(requests->profile, sample);
    row->stack = add_stack(building, sample);
    add_attributes(building, sample, row->attributes);
}

/* Adds to the dictionary all that will be needed, since it is sealed before it is written. Ends
 * with the sample for which there is no room any more: the others are for the next request. */
static int prepare(struct building *building)
{
    const struct otlp_requests *requests = building->requests;
    struct otlp_dictionary *dictionary = &building->dictionary;
    Otlp__ValueType types[2] = {OTLP__VALUE_TYPE__INIT, OTLP__VALUE_TYPE__INIT};
    size_t count = 0;
    building->rows = calloc(building->count + 1, sizeof *building->rows);
    if (building->rows == NULL) {
        return -ENOMEM;
    }
    otlp_dictionary_init(dictionary, requests->profile);
    otlp_name_types(dictionary, &types[0], &types[1]);
    while (count < building->count && dictionary->fault == 0 &&
           (count == 0 || bytes_min(building, count) <= requests->limits.bytes_max)) {
        add_row(building, sample_at(requests, building->position + count), &building->rows[count]);
        count++;
    }
    building->count = count;
    if (building->position + count == requests->profile->sample_count) {
        otlp_books_add(&building->books, dictionary);
    }
    otlp_dictionary_seal(dictionary);
    qsort(building->rows, count, sizeof *building->rows, compare_rows);
    return dictionary->fault;
}

/* Gives the sample the times of the rows or, where these stand for different amounts, what they
 * stand for together: stores do not take a value for each time. `times` has room for them. */
static void fill_sample(const struct row *rows, size_t count, bool has_values, uint64_t *times,
                        int64_t *value, Otlp__Sample *sample)
{
    *value = 0;
    for (size_t i = 0; i < count; i++) {
        times[i] = rows[i].time_ns;
        *value += (int64_t)rows[i].value;
    }
    if (has_values) {
        sample->n_values = 1;
        sample->values = value;
    } else {
        sample->n_timestamps_unix_nano = count;
        sample->timestamps_unix_nano = times;
    }
}

/* Writes one sample that stands for those of the rows. */
static int write_sample(struct message_out *out, const struct row *rows, size_t count,
                        bool has_values)
{
    cleanup_(freep) uint64_t *times = calloc(count, sizeof *times);
    int32_t attributes[ATTRIBUTES_MAX];
    int64_t value = 0;
    Otlp__Sample sample = OTLP__SAMPLE__INIT;
    if (times == NULL) {
        return -ENOMEM;
    }
    fill_sample(rows, count, has_values, times, &value, &sample);
    memcpy(attributes, rows[0].attributes, sizeof attributes);
    sample.stack_index = rows[0].stack;
    while (sample.n_attribute_indices < ATTRIBUTES_MAX &&
           attributes[sample.n_attribute_indices] != 0) {
        sample.n_attribute_indices++;
    }
    sample.attribute_indices = attributes;
    return message_out_field(out, OTLP_FIELD_SAMPLES, &sample.base);
}

/* Which samples a profile has, as 16 bytes (FNV-1a of 128 bits): which of those of the request its
 * service has, and which recording it is. */
static void make_profile_id(const struct building *building, const struct otlp_origin *origin,
                            uint32_t service, uint8_t *into)
{
    const __uint128_t prime = (__uint128_t)1 << 88 | 0x13b;
    const struct profile *profile = building->requests->profile;
    const char *session = profile->session_json;
    char key[SERVICE_BYTES_MAX * 5];
    int bytes = snprintf(
        key, sizeof key, "%zu %zu %u %" PRIu64 " %.256s %.256s %.256s %.256s", building->position,
        building->count, service, building->request->first_unix_ns, origin->service,
        origin->host == NULL ? "" : origin->host,
        profile->event.is_clock ? "" : profile->event.name, session == NULL ? "" : session);
    __uint128_t hash = (__uint128_t)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    for (int i = 0; i < bytes && (size_t)i < sizeof key; i++) {
        hash = (hash ^ (uint8_t)key[i]) * prime;
    }
    memcpy(into, &hash, PROFILE_ID_BYTES);
}

static int write_profile_head(struct building *building, struct message_out *out,
                              const struct otlp_origin *origin, const struct row *rows,
                              size_t count)
{
    struct otlp_dictionary *dictionary = &building->dictionary;
    uint8_t id[PROFILE_ID_BYTES];
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    Otlp__Profile head = OTLP__PROFILE__INIT;
    Otlp__ValueType samples = OTLP__VALUE_TYPE__INIT;
    Otlp__ValueType period = OTLP__VALUE_TYPE__INIT;
    for (size_t i = 0; i < count; i++) {
        first_ns = min_u64(first_ns, rows[i].time_ns);
        last_ns = max_u64(last_ns, rows[i].time_ns);
    }
    make_profile_id(building, origin, rows[0].service, id);
    otlp_name_types(dictionary, &samples, &period);
    head.sample_type = &samples;
    head.time_unix_nano = first_ns;
    head.duration_nano = last_ns - first_ns;
    if (building->requests->period > 0) {
        head.period_type = &period;
        head.period = (int64_t)building->requests->period;
    }
    head.profile_id = (ProtobufCBinaryData){PROFILE_ID_BYTES, id};
    head.n_attribute_indices = building->books.count;
    head.attribute_indices = building->books.attributes;
    return message_out_write(out, &head.base);
}

static int write_profile(struct building *building, struct message_out *out,
                         const struct otlp_origin *origin, const struct row *rows, size_t count)
{
    int r = write_profile_head(building, out, origin, rows, count);
    for (size_t first = 0, end = 0; first < count && r == 0; first = end) {
        for (end = first + 1; end < count && compare_samples(&rows[first], &rows[end]) == 0;) {
            end++;
        }
        r = write_sample(out, rows + first, end - first,
                         building->requests->profile->values != NULL);
    }
    return r;
}

/* What the service is called. `into` has SERVICE_BYTES_MAX. */
static void name_service(const struct profile *profile, const struct service *service, char *into)
{
    const char *name = "kernel";
    int bytes_max = (int)SERVICE_BYTES_MAX - 1;
    if (service->container != INTERN_NONE) {
        name = profile_text(profile, service->container);
        bytes_max = strspn(name, "0123456789abcdef") == 64 ? CONTAINER_DIGITS : bytes_max;
    } else if (service->user_unit != INTERN_NONE || service->unit != INTERN_NONE) {
        name = profile_text(profile,
                            service->user_unit != INTERN_NONE ? service->user_unit : service->unit);
        size_t bytes = strlen(name);
        size_t ending = strlen(UNIT_ENDING);
        bool is_service = bytes > ending && strcmp(name + bytes - ending, UNIT_ENDING) == 0 &&
                          bytes - ending < SERVICE_BYTES_MAX;
        bytes_max = is_service ? (int)(bytes - ending) : bytes_max;
    } else if (service->process_name != INTERN_NONE) {
        name = profile_text(profile, service->process_name);
    }
    (void)snprintf(into, SERVICE_BYTES_MAX, "%.*s", bytes_max, name);
}

/* Writes the profiles of one service: there is one. */
static int write_service(struct building *building, struct message_out *out, const struct row *rows,
                         size_t count)
{
    const struct profile *profile = building->requests->profile;
    size_t service_bytes = 0;
    char name[SERVICE_BYTES_MAX];
    const struct service *service =
        intern_bytes(&building->requests->services, rows[0].service, &service_bytes);
    cleanup_(piece_done) struct piece inner = {.bytes = NULL};
    cleanup_(piece_done) struct piece scope = {.bytes = NULL};
    cleanup_(piece_done) struct piece resource = {.bytes = NULL};
    name_service(profile, service, name);
    const struct otlp_origin origin = {
        .service = name,
        .host = service->host == INTERN_NONE ? NULL : profile_text(profile, service->host),
        .pid = PROFILE_PID_OUTSIDE,
        .owner = {.cgroup = INTERN_NONE,
                  .unit = service->unit,
                  .user_unit = service->user_unit,
                  .container = service->container,
                  .runtime = service->runtime,
                  .pod = service->pod,
                  .uid = PROFILE_UID_UNKNOWN},
    };
    int r = piece_begin(&inner);
    r = r < 0 ? r : write_profile(building, &inner.out, &origin, rows, count);
    r = r < 0 ? r : piece_end(&inner);
    r = r < 0 ? r : piece_begin(&scope);
    r = r < 0 ? r : otlp_write_scope(&scope.out);
    if (r == 0) {
        embed(&scope.out, OTLP_FIELD_PROFILES, &inner);
    }
    r = r < 0 ? r : piece_end(&scope);
    r = r < 0 ? r : piece_begin(&resource);
    r = r < 0 ? r : otlp_write_resource(&resource.out, profile, &origin);
    if (r == 0) {
        embed(&resource.out, OTLP_FIELD_SCOPE_PROFILES, &scope);
    }
    r = r < 0 ? r : piece_end(&resource);
    if (r == 0) {
        embed(out, OTLP_FIELD_RESOURCE_PROFILES, &resource);
    }
    return r;
}

static int write_request(struct building *building, struct message_out *out)
{
    cleanup_(piece_done) struct piece dictionary = {.bytes = NULL};
    const struct row *rows = building->rows;
    int r = piece_begin(&dictionary);
    if (r == 0) {
        otlp_dictionary_write(&building->dictionary, &dictionary.out);
        r = building->dictionary.fault;
    }
    r = r < 0 ? r : piece_end(&dictionary);
    if (r == 0) {
        embed(out, OTLP_FIELD_DICTIONARY, &dictionary);
    }
    for (size_t first = 0, end = 0; first < building->count && r == 0; first = end) {
        for (end = first + 1; end < building->count && rows[end].service == rows[first].service;) {
            end++;
        }
        r = write_service(building, out, rows + first, end - first);
        building->request->profile_count++;
    }
    return r;
}

/* Makes the request of so many samples. */
static int build(struct otlp_requests *requests, size_t position, size_t count,
                 struct otlp_request *ret)
{
    *ret = (struct otlp_request){.first_unix_ns = wall_ns(requests, position)};
    cleanup_(building_done) struct building building = {
        .requests = requests, .count = count, .position = position, .request = ret};
    cleanup_(piece_done) struct piece whole = {.bytes = NULL};
    int r = prepare(&building);
    ret->sample_count = building.count;
    ret->last_unix_ns = wall_ns(requests, position + max_u64(building.count, 1) - 1);
    r = r < 0 ? r : piece_begin(&whole);
    r = r < 0 ? r : write_request(&building, &whole.out);
    r = r < 0 ? r : piece_end(&whole);
    if (r == 0) {
        ret->size_bytes = whole.size_bytes;
        ret->bytes = (uint8_t *)take_ptr(whole.bytes);
    }
    return r;
}

int otlp_requests_make(struct otlp_requests *requests, size_t position, size_t sample_max,
                       struct otlp_request *ret)
{
    int r = build(requests, position, count_samples(requests, position, sample_max), ret);
    while (r == 0 && ret->size_bytes > requests->limits.bytes_max && ret->sample_count > 1) {
        free(ret->bytes);
        r = build(requests, position, ret->sample_count / 2, ret);
    }
    return r;
}
