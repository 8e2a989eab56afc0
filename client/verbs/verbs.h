/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of profctl, one line each: name, summary. verb_<name>.c has the verb. profctl --help
 * lists them in this order; the build takes sources and manual pages from here. `argv[0]` is the
 * verb. Each returns an enum exit_status and leaves flushing standard output to main().
 */

#define VERBS(X)                                                                                   \
    X(record, "record what the CPUs do into a file")                                               \
    X(start, "begin a session that goes on by itself")                                             \
    X(stop, "end the sampling of a session")                                                       \
    X(read, "fetch what a session has recorded into a file")                                       \
    X(close, "end a session")                                                                      \
    X(top, "show where the time goes now")                                                         \
    X(report, "show where the time of a recording went")                                           \
    X(diff, "show what grew and shrank between recordings")                                        \
    X(export, "convert a recording for another program")                                           \
    X(flamegraph, "draw a recording as a page for the browser")                                    \
    X(merge, "make one of several hosts' recordings")                                              \
    X(push, "send recordings to a store")                                                          \
    X(view, "show a recording in a viewer in the browser")                                         \
    X(dump, "print the records of a recording")                                                    \
    X(status, "show what the daemon is doing")                                                     \
    X(events, "list the events that record -e can count")                                          \
    X(check, "check a session config")                                                             \
    X(doctor, "say why profiling does not work well here")

#define VERB_DECLARATION(name, summary) int verb_##name(int argc, char **argv);
VERBS(VERB_DECLARATION)
#undef VERB_DECLARATION
