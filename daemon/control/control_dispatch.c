/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Dispatches Varlink calls: checks a message, finds its method in one of the interfaces, takes its
 * parameters by name, and calls the method. A wrong call is answered with an error of
 * org.varlink.service, which is served here, too. A message that is no call at all (no JSON object,
 * no method) breaks the protocol, and its connection is closed.
 */
#include "cleanup.h"
#include "control_peer.h"
#include "json.h"
#include "sampler.h"

#include <errno.h>
#include <string.h>

extern const char service_description[]; /* from common/org.varlink.service.varlink */

static int reply_service_error(struct peer *peer, const char *error, const char *member,
                               const char *value)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    if (cJSON_AddStringToObject(parameters, member, value) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, error, take_ptr(parameters));
}

int varlink_reply_invalid_parameter(struct peer *peer, const char *parameter)
{
    return reply_service_error(peer, VARLINK_SERVICE_INTERFACE ".InvalidParameter", "parameter",
                               parameter);
}

static int call_get_info(struct peer *peer, const cJSON *const *parameters)
{
    cleanup_(json_freep) cJSON *info = cJSON_CreateObject();
    cJSON *interfaces = cJSON_AddArrayToObject(info, "interfaces");
    (void)parameters;
    bool good = cJSON_AddStringToObject(info, "vendor", "cpu-profilerd") != NULL &&
                cJSON_AddStringToObject(info, "product", "cpu-profilerd") != NULL &&
                cJSON_AddStringToObject(info, "version", CPU_PROFILERD_VERSION) != NULL &&
                cJSON_AddStringToObject(info, "url", "") != NULL &&
                cJSON_AddItemToArray(interfaces, cJSON_CreateString(VARLINK_SERVICE_INTERFACE)) &&
                cJSON_AddItemToArray(interfaces, cJSON_CreateString(SAMPLER_INTERFACE));
    return good ? peer_reply(peer, take_ptr(info), false) : -ENOMEM;
}

static int call_get_interface_description(struct peer *peer, const cJSON *const *parameters);

static const struct varlink_method service_methods[] = {
    {"GetInfo", {NULL}, call_get_info},
    {"GetInterfaceDescription", {"interface"}, call_get_interface_description},
};

static const struct varlink_interface service_interface = {
    VARLINK_SERVICE_INTERFACE, service_description, service_methods,
    sizeof service_methods / sizeof service_methods[0]};

static const struct varlink_interface *find_interface(const char *name)
{
    const struct varlink_interface *const interfaces[] = {&service_interface, &sampler_interface};
    for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++) {
        if (strcmp(interfaces[i]->name, name) == 0) {
            return interfaces[i];
        }
    }
    return NULL;
}

static const struct varlink_method *find_method(const struct varlink_interface *interface,
                                                const char *name)
{
    for (size_t i = 0; i < interface->method_count; i++) {
        if (strcmp(interface->methods[i].name, name) == 0) {
            return &interface->methods[i];
        }
    }
    return NULL;
}

static int call_get_interface_description(struct peer *peer, const cJSON *const *parameters)
{
    if (!cJSON_IsString(parameters[0])) {
        return varlink_reply_invalid_parameter(peer, "interface");
    }
    const struct varlink_interface *interface = find_interface(parameters[0]->valuestring);
    if (interface == NULL) {
        return reply_service_error(peer, VARLINK_SERVICE_INTERFACE ".InterfaceNotFound",
                                   "interface", parameters[0]->valuestring);
    }
    cleanup_(json_freep) cJSON *reply = cJSON_CreateObject();
    if (cJSON_AddStringToObject(reply, "description", interface->description) == NULL) {
        return -ENOMEM;
    }
    return peer_reply(peer, take_ptr(reply), false);
}

static int call_method(struct peer *peer, const struct varlink_method *method,
                       const cJSON *parameters)
{
    const cJSON *items[METHOD_PARAMETERS_MAX] = {NULL};
    const char *offender = NULL;
    size_t count = 0;
    while (count < METHOD_PARAMETERS_MAX && method->parameters[count] != NULL) {
        count++;
    }
    if (json_take_members(parameters, method->parameters, count, items, &offender) < 0) {
        return varlink_reply_invalid_parameter(peer, offender);
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = cJSON_IsNull(items[i]) ? NULL : items[i];
    }
    return method->call(peer, items);
}

/* `method` is "INTERFACE.NAME", and may be written to. */
static int call_by_name(struct peer *peer, char *method, const cJSON *parameters)
{
    char *dot = strrchr(method, '.');
    if (dot == NULL) {
        return varlink_reply_invalid_parameter(peer, "method");
    }
    *dot = '\0';
    const struct varlink_interface *interface = find_interface(method);
    if (interface == NULL) {
        return reply_service_error(peer, VARLINK_SERVICE_INTERFACE ".InterfaceNotFound",
                                   "interface", method);
    }
    *dot = '.';
    const struct varlink_method *found = find_method(interface, dot + 1);
    if (found == NULL) {
        return reply_service_error(peer, VARLINK_SERVICE_INTERFACE ".MethodNotFound", "method",
                                   method);
    }
    if (interface == &sampler_interface && !peer->is_admitted) {
        return control_reply_not_admitted(peer);
    }
    return call_method(peer, found, parameters);
}

enum call_member {
    CALL_METHOD,
    CALL_PARAMETERS,
    CALL_MORE,
    CALL_ONEWAY,
    CALL_UPGRADE,
    CALL_MEMBER_COUNT,
};

/* The name of the member of a call that is not as it must be, or NULL. */
static const char *find_bad_member(const cJSON *call, const cJSON **ret_items)
{
    static const char *const names[CALL_MEMBER_COUNT] = {
        [CALL_METHOD] = "method", [CALL_PARAMETERS] = "parameters", [CALL_MORE] = "more",
        [CALL_ONEWAY] = "oneway", [CALL_UPGRADE] = "upgrade",
    };
    const char *offender = NULL;
    if (json_take_members(call, names, CALL_MEMBER_COUNT, ret_items, &offender) < 0) {
        return offender;
    }
    for (size_t flag = CALL_MORE; flag <= CALL_UPGRADE; flag++) {
        if (ret_items[flag] != NULL && !cJSON_IsBool(ret_items[flag])) {
            return names[flag];
        }
    }
    if (cJSON_IsTrue(ret_items[CALL_UPGRADE])) {
        return names[CALL_UPGRADE]; /* no method of ours has anything to upgrade to */
    }
    const cJSON *parameters = ret_items[CALL_PARAMETERS];
    return parameters == NULL || cJSON_IsNull(parameters) || cJSON_IsObject(parameters)
               ? NULL
               : names[CALL_PARAMETERS];
}

int varlink_call(struct peer *peer, const char *text, size_t text_bytes)
{
    cleanup_(json_freep) cJSON *call = NULL;
    int r = json_parse(text, text_bytes, SAMPLER_MESSAGE_DEPTH_MAX, &call, NULL);
    if (r < 0) {
        return r == -EINVAL ? -EBADMSG : r;
    }
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(call, "method");
    if (!cJSON_IsObject(call) || !cJSON_IsString(method)) {
        return -EBADMSG;
    }
    const cJSON *items[CALL_MEMBER_COUNT];
    const char *offender = find_bad_member(call, items);
    peer->call_oneway = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(call, "oneway"));
    peer->call_more = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(call, "more"));
    if (offender != NULL) {
        return varlink_reply_invalid_parameter(peer, offender);
    }
    return call_by_name(peer, method->valuestring, items[CALL_PARAMETERS]);
}
