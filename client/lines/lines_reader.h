/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What main() does where its argv[1] is LINES_READER_ARGUMENT: never returns. */
_Noreturn void lines_reader(void);
