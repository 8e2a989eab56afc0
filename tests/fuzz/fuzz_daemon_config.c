/* SPDX-License-Identifier: Apache-2.0 */

/* What is refused has a fault that can be shown; what is accepted lets every session have its
 * defaults, within the limits. */
#include "daemon_config.h"
#include "fuzz_target.h"

#include <errno.h>
#include <stdlib.h>

static void check_defaults(const struct session_limits *limits, bool detached)
{
    struct session_config session;
    uint64_t half = limits->max_frequency_hz / 2;
    /* A period may be 0.1 % off its rate. */
    uint64_t shortest_ns = (1000000000 + half) / limits->max_frequency_hz * 999 / 1000;
    if (session_config_parse_within("{}", 2, detached, limits, &session, NULL) != 0 ||
        session.stack_copy_bytes > limits->max_stack_copy_bytes ||
        session.period_ns < shortest_ns ||
        (limits->max_duration_s > 0 &&
         (session.max_duration_s == 0 || session.max_duration_s > limits->max_duration_s)) ||
        (limits->max_stack_copy_bytes == 0) != (session.unwind == SESSION_UNWIND_FP)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct daemon_config config;
    struct fault fault = {0};
    int r = daemon_config_parse((const char *)bytes, size, "", &config, &fault);
    if (r < 0) {
        if (r != -EINVAL || fault.member[0] == '\0' || fault.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (config.allowed_uids.count > DAEMON_IDS_MAX || config.allowed_gids.count > DAEMON_IDS_MAX ||
        !daemon_config_admits(&config, 0, NULL, 0) ||
        daemon_config_describe(&config).text[0] == '\0') {
        abort();
    }
    check_defaults(&config.limits, true);
    check_defaults(&config.limits, false);
    return 0;
}
