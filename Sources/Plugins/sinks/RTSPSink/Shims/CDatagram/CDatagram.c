// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CDatagram.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

int fh_can_segment(int socket) {
    int value = 0;
    socklen_t bytes = sizeof value;
    return getsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &value, &bytes) == 0;
}

int fh_send_datagrams(int socket, const fh_datagrams *sends, unsigned count) {
    struct mmsghdr headers[FH_MOST_SENDS];
    _Alignas(struct cmsghdr) char controls[FH_MOST_SENDS][CMSG_SPACE(sizeof(uint16_t))];
    if (count > FH_MOST_SENDS) count = FH_MOST_SENDS;
    for (unsigned i = 0; i < count; i++) {
        struct msghdr *header = &headers[i].msg_hdr;
        memset(header, 0, sizeof *header);
        header->msg_name = (void *)sends[i].address;
        header->msg_namelen = sends[i].address_bytes;
        header->msg_iov = sends[i].parts;
        header->msg_iovlen = sends[i].count;
        if (sends[i].count < 2) continue;
        header->msg_control = controls[i];
        header->msg_controllen = sizeof controls[i];
        struct cmsghdr *control = CMSG_FIRSTHDR(header);
        control->cmsg_level = IPPROTO_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
        memcpy(CMSG_DATA(control), &sends[i].segment_bytes, sizeof(uint16_t));
    }
    return sendmmsg(socket, headers, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}
