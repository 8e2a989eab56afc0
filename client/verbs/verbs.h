/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of profctl, one file each. `argv[0]` is the verb. Each returns an enum exit_status and
 * leaves flushing standard output to main().
 */

int verb_check(int argc, char **argv);
int verb_close(int argc, char **argv);
int verb_diff(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_dump(int argc, char **argv);
int verb_export(int argc, char **argv);
int verb_flamegraph(int argc, char **argv);
int verb_merge(int argc, char **argv);
int verb_push(int argc, char **argv);
int verb_read(int argc, char **argv);
int verb_record(int argc, char **argv);
int verb_report(int argc, char **argv);
int verb_start(int argc, char **argv);
int verb_events(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_stop(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_view(int argc, char **argv);
