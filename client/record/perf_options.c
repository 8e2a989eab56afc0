/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Says what is done in place of options of perf record that people have in their fingers.
 */
#include "record.h"

#define STACKS   "stacks of programs are always recorded, and without --no-kernel the kernel's"
#define COUNT    "-e EVENT:COUNT takes a sample each COUNT events"
#define CHILDREN "children are always recorded; -t records single threads"
#define FIELDS   "the CPU, the time and the thread of a sample are always recorded"
#define CPUS                                                                                       \
    "the member \"cpus\" of a config names CPUs, as in --config FILE with {\"cpus\":\"0-3\"}"
#define BUFFER "the member \"buffer_kib_per_cpu\" of a config sizes the buffers; see --config"
#define WHOLE  "the whole machine is recorded where nothing names a part of it"

const struct option_elsewhere record_perf_options[] = {
    {"-g", STACKS},
    {"--call-graph", STACKS "; how they are unwound is the member \"unwind\" of a config"},
    {"-a", WHOLE},
    {"--all-cpus", WHOLE},
    {"-c", COUNT},
    {"--count", COUNT},
    {"-C", CPUS},
    {"--cpu", CPUS},
    {"-i", CHILDREN},
    {"--no-inherit", CHILDREN},
    {"--inherit", CHILDREN},
    {"-T", FIELDS},
    {"--timestamp", FIELDS},
    {"--sample-cpu", FIELDS},
    {"-m", BUFFER},
    {"--mmap-pages", BUFFER},
    {"--off-cpu", "--wall records what threads wait for"},
    {"--all-user", "--no-kernel leaves out the stacks of the kernel"},
    {"--all-kernel", "stacks of programs are always recorded"},
    {"--kernel-callchains", "--kernel asks for stacks of the kernel"},
    {"--user-callchains", "--no-kernel leaves out the stacks of the kernel"},
    {"--max-size", "-d bounds the time, and with it the size"},
    {"-z", "a name that ends in .gz is compressed: -o profile.fxt.gz"},
    {"--compression-level", "a name that ends in .gz is compressed: -o profile.fxt.gz"},
    {0},
};
