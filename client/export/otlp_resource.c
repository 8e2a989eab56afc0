/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes where samples come from, by OpenTelemetry's names; units by those of its receiver of
 * systemd. What they count has the names of other profilers that send to stores. Books become
 * attributes `cpu_profilerd.TERM`.
 */
#include "otlp_resource.h"

#include "cleanup.h"
#include "export_books.h"
#include "export_cost.h"
#include "utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCE_MAX    11
#define REPLACED_FACTOR 3 /* bytes of U+FFFD, which stands for one */
#define KEY_BYTES       ((size_t)96)

/* What the resource says. */
struct resource {
    Otlp__KeyValue attributes[RESOURCE_MAX];
    Otlp__AnyValue values[RESOURCE_MAX];
    char keys[RESOURCE_MAX][KEY_BYTES];
    char *texts[RESOURCE_MAX]; /* owned */
    size_t count;
    int fault;
};

static void resource_done(struct resource *resource)
{
    for (size_t i = 0; i < RESOURCE_MAX; i++) {
        free(resource->texts[i]);
    }
}

static Otlp__AnyValue *add_attribute(struct resource *resource, const char *key)
{
    Otlp__KeyValue *attribute = &resource->attributes[resource->count];
    Otlp__AnyValue *value = &resource->values[resource->count];
    *attribute = (Otlp__KeyValue)OTLP__KEY_VALUE__INIT;
    *value = (Otlp__AnyValue)OTLP__ANY_VALUE__INIT;
    (void)snprintf(resource->keys[resource->count], KEY_BYTES, "%s", key);
    attribute->key = resource->keys[resource->count];
    attribute->value = value;
    resource->count++;
    return value;
}

static void add_number(struct resource *resource, const char *key, int64_t number)
{
    Otlp__AnyValue *value = add_attribute(resource, key);
    value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
    value->int_value = number;
}

static void add_text(struct resource *resource, const char *key, const char *text)
{
    if (text == NULL) {
        return;
    }
    size_t capacity_bytes = REPLACED_FACTOR * strlen(text) + 1;
    char *clean = malloc(capacity_bytes);
    if (clean == NULL) {
        resource->fault = -ENOMEM;
        return;
    }
    (void)utf8_clean(clean, capacity_bytes, text, strlen(text));
    resource->texts[resource->count] = clean;
    Otlp__AnyValue *value = add_attribute(resource, key);
    value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = clean;
}

static void add_owner(struct resource *resource, const struct profile *profile,
                      const struct profile_owner *owner)
{
    const struct {
        const char *key;
        uint32_t text;
    } members[] = {
        {"systemd.unit.name", owner->unit}, {"systemd.user_unit.name", owner->user_unit},
        {"container.id", owner->container}, {"container.runtime.name", owner->runtime},
        {"k8s.pod.uid", owner->pod},        {"process.linux.cgroup", owner->cgroup},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (members[i].text != INTERN_NONE) {
            add_text(resource, members[i].key, profile_text(profile, members[i].text));
        }
    }
    if (owner->uid != PROFILE_UID_UNKNOWN) {
        add_number(resource, "process.user.id", owner->uid);
    }
}

int otlp_write_resource(struct message_out *out, const struct profile *profile,
                        const struct otlp_origin *origin)
{
    cleanup_(resource_done) struct resource resource = {.count = 0};
    Otlp__KeyValue *list[RESOURCE_MAX];
    Otlp__Resource said = OTLP__RESOURCE__INIT;
    Otlp__ResourceProfiles message = OTLP__RESOURCE_PROFILES__INIT;
    add_text(&resource, "service.name", origin->service);
    add_text(&resource, "process.executable.name", origin->executable);
    add_text(&resource, "host.name", origin->host);
    if (origin->pid != PROFILE_PID_OUTSIDE && origin->pid <= INT64_MAX) {
        add_number(&resource, "process.pid", (int64_t)origin->pid);
    }
    add_owner(&resource, profile, &origin->owner);
    for (size_t i = 0; i < resource.count; i++) {
        list[i] = &resource.attributes[i];
    }
    said.n_attributes = resource.count;
    said.attributes = list;
    message.resource = &said;
    return resource.fault < 0 ? resource.fault : message_out_write(out, &message.base);
}

int otlp_write_scope(struct message_out *out)
{
    char name[] = "cpu-profilerd";
    char version[] = CPU_PROFILERD_VERSION;
    Otlp__Scope scope = OTLP__SCOPE__INIT;
    Otlp__ScopeProfiles message = OTLP__SCOPE_PROFILES__INIT;
    scope.name = name;
    scope.version = version;
    message.scope = &scope;
    return message_out_write(out, &message.base);
}

/* What lines of the books become attributes of. */
struct adding {
    struct otlp_books *books;
    struct otlp_dictionary *dictionary;
};

static void add_book(const char *line, void *userdata)
{
    struct adding *adding = userdata;
    struct otlp_books *books = adding->books;
    const char *colon = strchr(line, ':');
    char key[KEY_BYTES];
    char *end = NULL;
    int64_t number = colon == NULL ? 0 : strtoll(colon + 1, &end, 10);
    if (colon == NULL || *end != '\0' || end == colon + 1 || books->count == OTLP_BOOKS_MAX) {
        return;
    }
    (void)snprintf(key, sizeof key, "cpu_profilerd.%.*s", (int)(colon - line), line);
    for (char *at = key; *at != '\0'; at++) {
        *at = *at == ' ' ? '.' : *at;
    }
    books->attributes[books->count++] = otlp_number_attribute(adding->dictionary, key, number);
}

void otlp_books_add(struct otlp_books *books, struct otlp_dictionary *dictionary)
{
    struct adding adding = {books, dictionary};
    export_books_lines(dictionary->profile, add_book, &adding);
}

void otlp_name_types(struct otlp_dictionary *dictionary, Otlp__ValueType *samples,
                     Otlp__ValueType *period)
{
    const struct profile_event *event = &dictionary->profile->event;
    char name[EXPORT_EVENT_BYTES];
    (void)export_event_name(event, name);
    if (!event->is_clock) {
        const char *unit = event->is_time ? "nanoseconds" : "count";
        samples->type_strindex =
            otlp_string(dictionary, strcmp(name, "off-cpu") == 0 ? "off_cpu" : name);
        samples->unit_strindex = otlp_string(dictionary, unit);
        *period = *samples;
        return;
    }
    samples->type_strindex = otlp_string(dictionary, "samples");
    samples->unit_strindex = otlp_string(dictionary, "count");
    period->type_strindex = otlp_string(dictionary, "cpu");
    period->unit_strindex = otlp_string(dictionary, "nanoseconds");
}

uint64_t otlp_period(const struct profile *profile)
{
    const struct profile_event *event = &profile->event;
    return event->is_clock ? profile_period_ns(profile) : event->is_time ? 0 : 1;
}
