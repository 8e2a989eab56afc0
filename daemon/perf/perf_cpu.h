/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The events of one CPU, with their rings. Of perf_source only. */

#include "perf_source.h"

/*
 * Opens them, disabled, and maps their rings into `cpu`, whose number is set; `bounces` (borrowed
 * for its life) has room for a record of each ring. Returns 0, or -errno with a fault and `cpu`
 * closed; -ENODEV: the CPU is offline.
 */
int perf_cpu_open(const struct perf_source *source, bool sampled, uint8_t *bounces,
                  struct perf_cpu *cpu, struct fault *reterr);
/* A CPU without events: absent. */
void perf_cpu_init(struct perf_cpu *cpu, uint32_t number);
/* Leaves one that has no events. */
void perf_cpu_close(struct perf_cpu *cpu);

uint64_t perf_cpu_ring_bytes(const struct perf_cpu *cpu);

/* An ioctl without an argument on an event; nothing where there is none. Returns 0 or -errno. */
int perf_cpu_control(int fd, unsigned long request);

/* In no core dump. Kernels do so to perf rings by themselves; it is asked for since it must hold.
 * Returns 0 or -errno. */
int perf_cpu_hide(void *map, size_t bytes);
