/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads --min-wait, in whole microseconds, as a session config has it. Other options take a number
 * without a unit for seconds. That would leave out nearly every wait here, so a unit is needed.
 */
#include "record.h"

#include "clock.h"
#include "duration.h"
#include "session_config.h"

#include <string.h>

#define US_PER_S  UINT64_C(1000000)
#define NS_PER_US (NS_PER_S / US_PER_S)

int wait_take_least(const struct command_line *line, const struct verb_option *option,
                    const char *value, void *into)
{
    uint64_t time_ns = 0;
    (void)option;
    if (value[0] != '\0' && value[strspn(value, "0123456789.")] == '\0') {
        return options_refuse(line, "--min-wait %s: has no unit; give %sus, %sms or %ss", value,
                              value, value, value);
    }
    if (!duration_parse(value, SESSION_MIN_WAIT_US_MAX * NS_PER_US, &time_ns) || time_ns == 0 ||
        time_ns % NS_PER_US != 0) {
        return options_refuse(line,
                              "--min-wait %s: give a time in whole microseconds, above 0 and at "
                              "most %u s, such as 100us or 1ms",
                              value, (unsigned)(SESSION_MIN_WAIT_US_MAX / US_PER_S));
    }
    *(uint64_t *)into = time_ns / NS_PER_US;
    return EXIT_DONE;
}
