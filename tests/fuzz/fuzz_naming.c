/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever a process that is asked for names answers, and whatever /proc has of it: an answer is
 * either "done" or says why not in a text that ends, and a status gives numbers or nothing.
 */
#include "fuzz_target.h"
#include "naming_ask.h"
#include "naming_counters.h"

#include <runtimes.h>
#include <stdlib.h>
#include <string.h>

static void expect(bool truth)
{
    if (!truth) {
        abort();
    }
}

typedef void judge_fn(const char *reply, size_t reply_bytes, struct naming_answer *answer);

static void read_answer(judge_fn *judge, const char *reply, size_t reply_bytes)
{
    struct naming_answer answer = {0};
    judge(reply, reply_bytes, &answer);
    size_t length = strnlen(answer.why, sizeof answer.why);
    expect(length < sizeof answer.why && answer.is_done == (length == 0));
}

static void read_status(const char *text)
{
    struct naming_process process = {0};
    if (naming_process_parse(text, &process)) {
        expect(process.inner > 0);
        expect(strnlen(process.comm, sizeof process.comm) < sizeof process.comm);
    }
}

static void read_mappings(const char *text)
{
    struct runtime_mappings mappings = {0};
    runtime_mappings_take(&mappings, text);
    size_t runtime = runtime_of_process("libexec", &mappings);
    expect(mappings.has_library ? runtime == mappings.runtime : runtime == RUNTIME_NONE);
}

/* The text changes, so it is the last that reads it. */
static void read_groups(char *text)
{
    struct session_targets targets = {.cgroup_count = 1, .unit_count = 1};
    (void)strcpy(targets.cgroups[0], "/sys/fs/cgroup/a/");
    (void)strcpy(targets.units[0], "web-*.service");
    (void)naming_cgroup_matches(text, &targets);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);
    if (text == NULL) {
        return 0;
    }
    read_answer(naming_jvm_judge, text, size);
    read_answer(naming_dotnet_judge, text, size);
    read_status(text);
    read_mappings(text);
    (void)naming_counters_judge(bytes, size);
    read_groups(text);
    free(text);
    return 0;
}
