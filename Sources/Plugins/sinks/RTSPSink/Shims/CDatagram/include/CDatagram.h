// SPDX-License-Identifier: Apache-2.0

#pragma once
// What Swift does not import: sendmmsg(2) with UDP_SEGMENT (udp(7)), whose control message is made of macros.
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

/// What one call sends to one receiver: `count` datagrams of `segment_bytes` each, of which the last may be shorter.
typedef struct {
    const struct sockaddr *address;
    socklen_t address_bytes;
    struct iovec *parts;
    size_t count;
    uint16_t segment_bytes;
} fh_datagrams;

/// Sends as many of `sends` as the socket takes, at most FH_MOST_SENDS; returns how many, or -1 with errno set.
int fh_send_datagrams(int socket, const fh_datagrams *sends, unsigned count);

/// 1 where the kernel cuts one send into datagrams (UDP_SEGMENT), else 0.
int fh_can_segment(int socket);

#define FH_MOST_SENDS 64
