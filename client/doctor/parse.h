/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Texts of the kernel and of systemd -> facts. Pure: any text may come. */

#include "facts.h"

/* The mode in brackets of /sys/kernel/security/lockdown, "none [integrity] confidentiality"; ""
 * where there is none. */
void parse_lockdown(const char *text, char *into, size_t capacity_bytes);

/* A line "MemAvailable:   23452 kB" of /proc/meminfo; false: there is none. */
bool parse_meminfo(const char *text, const char *member, int64_t *ret);

/* The mask of "CapEff:" in /proc/PID/status; false: there is none. */
bool parse_capabilities(const char *text, uint64_t *ret);

/* Whether "Seccomp:" there says that a filter is in force. */
bool parse_filter(const char *text);

/* The innermost pid of "NSpid:" there; 0 where there is none. */
pid_t parse_inner_pid(const char *text);

/* The real uid of "Uid:" there; false: there is none. */
bool parse_uid(const char *text, uid_t *ret);

/* The soft limit of a row of /proc/PID/limits ("Max locked memory"), -1 for "unlimited"; false:
 * there is none. */
bool parse_limit(const char *text, const char *row, int64_t *ret);

/* Offset of the clock of boot in /proc/self/timens_offsets, in seconds; "" where it is 0. */
void parse_time_offset(const char *text, char *into, size_t capacity_bytes);

/* Whether a unit's file has a line "name=". Comments, and longer names that end so, do not count.
 */
bool parse_has_setting(const char *text, const char *name);

/* One unit of `systemctl show`, the one whose Id= is `unit`; false: it is not there. */
bool parse_unit(const char *text, const char *unit, struct unit_facts *ret);

/* The value of ID= in /etc/os-release, without quotes; "" where there is none. */
void parse_os_id(const char *text, char *into, size_t capacity_bytes);

/*
 * The packages in what `dpkg-query -S PATH...` prints ("coreutils: /usr/bin/ls"), each once with
 * "-dbgsym" behind it, separated by spaces. A name that is none of a package's is left out.
 */
void parse_owners(const char *text, char *into, size_t capacity_bytes);

/* Of such packages those that `apt-cache show` has printed ("Package: NAME"). */
void parse_shown(const char *text, const char *packages, char *into, size_t capacity_bytes);
