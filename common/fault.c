/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Formats faults. Pure: no logging, no allocation. A text that does not fit is cut, never refused,
 * so that the error path cannot fail.
 */
#include "fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 0))) static void
fill(struct fault *reterr, int code, const char *member, const char *format, va_list args)
{
    if (reterr == NULL) {
        return;
    }
    reterr->code = code;
    (void)snprintf(reterr->member, sizeof reterr->member, "%s", member);
    (void)vsnprintf(reterr->text, sizeof reterr->text, format, args);
}

int fault_set(struct fault *reterr, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(reterr, code, "", format, args);
    va_end(args);
    return -code;
}

int fault_set_member(struct fault *reterr, const char *member, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(reterr, EINVAL, member, format, args);
    va_end(args);
    return -EINVAL;
}
