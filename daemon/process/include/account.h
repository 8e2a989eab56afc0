/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Maps a uid to the account that its shares are charged to. A user can run programs under each of
 * the subordinate uids that /etc/subuid gives it (newuidmap, set-user-id files), so all of them are
 * one account: the user's own uid. Root hands its subordinate uids to containers, 65,536 to each,
 * so every such block is an account of its own; and so is each aligned block of the uids that
 * systemd takes for containers without an entry in any file (systemd-nspawn -U), 524288 to
 * 1879048191, but for those of /etc/passwd. Any other uid is its own account. Where
 * /etc/nsswitch.conf names a source of users that no file lists (SSSD, LDAP), such uids may be
 * people's, so each is its own account too.
 */

#include <stdint.h>
#include <sys/types.h>

struct account_files {
    const char *subuid;
    const char *passwd;
    const char *nsswitch;
};

#define ACCOUNT_FILES_OF_MACHINE                                                                   \
    (&(const struct account_files){"/etc/subuid", "/etc/passwd", "/etc/nsswitch.conf"})

/* Accounts are made of the first so many ranges of the file; further ones are ignored. So are
 * further users with the uid of a container. */
#define ACCOUNT_RANGES_MAX 4096

/*
 * Reads the files and replaces what was read before, for the whole process. Where stat() says that
 * none has changed since, nothing is read. Names are looked up in `passwd` alone, since other name
 * services may not answer; ranges of a name that is not there are one account, named by the first
 * uid of the first of them. Lines that newuidmap would not accept are ignored. Returns 1 when the
 * files were read, 0 when they are as before, or -errno and leaves the accounts as they were; a
 * missing file is no error and means that it says nothing. For one thread.
 */
int account_load(const struct account_files *files);

/* The account of `uid`; the uid itself until account_load() was called. May be called from every
 * thread. */
uint32_t account_of(uid_t uid);
