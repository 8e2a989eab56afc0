/* SPDX-License-Identifier: Apache-2.0 */

/* What is accepted prints as a text that is accepted and has equal values; what is refused has a
 * fault that can be shown. */
#include "cleanup.h"
#include "fuzz_target.h"
#include "session_config.h"

#include <errno.h>
#include <string.h>

static void parse_or_abort(const char *text, struct session_config *ret)
{
    if (text == NULL || session_config_parse(text, strlen(text), false, ret, NULL) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct session_config config;
    struct session_config again;
    struct fault fault = {0};
    memset(&config, 0, sizeof config);
    memset(&again, 0, sizeof again);
    int r = session_config_parse((const char *)bytes, size, false, &config, &fault);
    if (r < 0) {
        if (r != -EINVAL || fault.member[0] == '\0' || fault.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    cleanup_(freep) char *printed = session_config_print(&config);
    parse_or_abort(printed, &again);
    cleanup_(freep) char *printed_again = session_config_print(&again);
    if (printed_again == NULL || strcmp(printed, printed_again) != 0 ||
        config.period_ns != again.period_ns || config.max_duration_s != again.max_duration_s ||
        memcmp(&config.targets, &again.targets, sizeof config.targets) != 0) {
        abort();
    }
    return 0;
}
