/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Maps a uid to the account that its shares are charged to. A user can run programs under each of
 * the subordinate uids that /etc/subuid gives it (newuidmap, set-user-id files), so all of them are
 * one account: the user's own uid. Root hands its subordinate uids to containers, 65,536 to each,
 * so every such block is an account of its own. Any other uid is its own account.
 */

#include <stdint.h>
#include <sys/types.h>

#define ACCOUNT_SUBUID_PATH "/etc/subuid"
#define ACCOUNT_PASSWD_PATH "/etc/passwd"

/* Accounts are made of the first so many ranges of the file; further ones are ignored. */
#define ACCOUNT_RANGES_MAX 4096

/*
 * Reads both files and replaces what was read before, for the whole process. Where stat() says that
 * neither has changed since, nothing is read. Names are looked up in
 * `passwd_path` alone, since other name services may not answer; ranges of a name that is not there
 * are one account, named by the first uid of the first of them. Lines that newuidmap would not
 * accept are ignored. Returns 1 when the files were read, 0 when they are as before, or -errno and
 * leaves the accounts as they were; a missing `subuid_path` is no error and means no ranges. For
 * one thread.
 */
int account_load(const char *subuid_path, const char *passwd_path);

/* The account of `uid`; the uid itself until account_load() was called. May be called from every
 * thread. */
uint32_t account_of(uid_t uid);
