/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of profctl, one file each. `argv[0]` is the verb. Each returns an enum exit_status and
 * leaves flushing standard output to main().
 */

int cmd_check(int argc, char **argv);
int cmd_close(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_read(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_stop(int argc, char **argv);
