// SPDX-License-Identifier: Apache-2.0

#pragma once
// What Swift does not import: sendmmsg(2) with UDP_SEGMENT (udp(7)), whose control message is made of macros.
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

/// One call's worth of one receiver: `count` datagrams, all of `segment_bytes` but the last, which may be shorter.
typedef struct {
    const struct sockaddr *address;
    socklen_t address_bytes;
    struct iovec *parts;
    size_t count;
    uint16_t segment_bytes;
} fh_datagrams;

/// Sends as many of `sends` as the socket takes, at most FH_MOST_SENDS; how many it took, or -1 with errno set.
int fh_send_datagrams(int socket, const fh_datagrams *sends, unsigned count);

/// 1 where the kernel cuts one send into datagrams (UDP_SEGMENT), else 0.
int fh_can_segment(int socket);

#define FH_MOST_SENDS 64
