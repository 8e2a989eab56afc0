/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What elf_worker.c and elf_worker_child.c say to each other over a SOCK_SEQPACKET socket, one
 * structure a message. First the settings, once; then a request with its descriptors (the file, an
 * empty memfd for the table and, where there is one, the debug file), and for each one reply,
 * without any. A request for two tables has a memfd for each instead of a debug file, and two
 * replies, each as soon as its table is made. The worker seals a memfd before it says that the
 * table is in it. Private to one build of the program.
 */

#include <stdint.h>

#define ELF_WORKER_FILES_MIN       2 /* of a request */
#define ELF_WORKER_FILES_MAX       3
#define ELF_WORKER_EXIT_UNFILTERED 3 /* the status of one that the kernel gives no filter */

struct elf_worker_settings {
    uint32_t uid; /* UINT32_MAX: keep */
    uint32_t gid;
    uint64_t memory_bytes; /* 0: ELF_WORKER_MEMORY_MAX */
};

struct elf_worker_question {
    uint64_t sequence;
    uint32_t request;      /* enum elf_worker_request */
    uint32_t known_bytes;  /* of a perf map or a jitdump: as were read of it before */
    uint32_t then_symbols; /* 1: after the call frames, the symbols; else 0 */
    uint32_t zero;
    uint64_t link_count; /* of the file, as the next, when it was opened; 0: do not compare */
    uint64_t size_bytes;
    int64_t changed_s;
    int64_t changed_ns;
};

struct elf_worker_answer {
    uint64_t sequence; /* of the request */
    uint64_t size_bytes;
    int32_t error; /* 0, or a negative errno value */
    uint32_t zero;
};
