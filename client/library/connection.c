/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks into a connection, for profctl alone.
 */
#include "connection.h"

#include "rpc.h"

const struct connection_notes *connection_notes(const struct profctl *conn)
{
    return &conn->notes;
}

void connection_acknowledge(struct profctl *conn, uint64_t sequence)
{
    conn->ack = sequence;
}

const char *connection_path(const struct profctl *conn)
{
    return conn->path;
}
