/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What both ends of the control socket must agree on, besides the .varlink files beside this. */

#define SAMPLER_INTERFACE          "io.cpuprofilerd.Sampler"
#define VARLINK_SERVICE_INTERFACE  "org.varlink.service"
#define SAMPLER_SOCKET_ENVIRONMENT "CPU_PROFILERD_SOCKET"
#define SAMPLER_SOCKET_DIRECTORY   "/run/cpu-profilerd"
#define SAMPLER_SOCKET_PATH        SAMPLER_SOCKET_DIRECTORY "/control.sock"
#define SAMPLER_GROUP              "cpu-profiler"

/* Nesting of a message, with that of a session config inside it. */
#define SAMPLER_MESSAGE_DEPTH_MAX 16
/* What a Read hands out at the most. */
#define SAMPLER_READ_BYTES_MAX 1048576
