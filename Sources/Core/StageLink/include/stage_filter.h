// SPDX-License-Identifier: Apache-2.0
// A filter in C: tells the host what it is, then takes one frame after the other. docs/stage-protocol.md.
#ifndef FRAMEHOST_STAGE_FILTER_H
#define FRAMEHOST_STAGE_FILTER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "stage_link.h"

struct fh_filter {
    struct fh_control *control;
    uint8_t *buffers;
    char brief[FH_LINK_MESSAGE + 1];  // JSON: { "stage", "folder", "options": { … }, … }
};

static inline int fh_say(const char *json) {
    return send(FH_LINK_SOCKET, json, strlen(json), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/// Answers with `description`, the JSON object of docs/stage-protocol.md, and ends the process if the host asks for nothing
/// else. Otherwise takes the brief and maps the frames. 0, or -1.
static inline int fh_make(struct fh_filter *filter, const char *description) {
    ssize_t count = recv(FH_LINK_SOCKET, filter->brief, FH_LINK_MESSAGE, 0);
    if (count <= 0) return -1;
    filter->brief[count] = 0;
    if (strncmp(filter->brief, "{\"describe\"", 11) == 0) {
        char text[FH_LINK_MESSAGE];
        snprintf(text, sizeof text, "{\"version\":%d,\"describe\":%s}", FH_LINK_VERSION, description);
        exit(fh_say(text) == 0 ? 0 : 1);
    }
    void *control = mmap(NULL, fh_control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FH_LINK_CONTROL, 0);
    if (control == MAP_FAILED) return -1;
    filter->control = control;
    if (filter->control->version != FH_LINK_VERSION) return -1;
    size_t bytes = filter->control->buffers * filter->control->buffer_bytes;
    void *buffers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FH_LINK_BUFFERS, 0);
    if (buffers == MAP_FAILED) return -1;
    filter->buffers = buffers;
    return 0;
}

/// Agrees to the format of the frames, and waits until the chain starts. 0, or -1 where the host has gone.
static inline int fh_start(struct fh_filter *filter) {
    char word[256];
    if (fh_say("{\"negotiated\":{}}") != 0) return -1;
    if (!filter->control->starts && recv(FH_LINK_SOCKET, word, sizeof word, 0) <= 0) return -1;
    return fh_say("{\"ready\":true}");
}

/// Answers the last call.
static inline void fh_answer(struct fh_filter *filter, enum fh_verdict verdict) {
    struct fh_slot *slot = &filter->control->slot[0];
    slot->reply = (struct fh_reply){.verdict = verdict, .item = slot->call.item};
    fh_store(&slot->replies, slot->calls);
    fh_wake(&slot->replies);
}

/// Waits for the next frame; NULL when the stage is over. Calls that only ask for a word are answered here.
static inline struct fh_call *fh_next(struct fh_filter *filter) {
    struct fh_slot *slot = &filter->control->slot[0];
    for (;;) {
        uint32_t done = slot->replies;
        while (fh_load(&slot->calls) == done) fh_wait(&slot->calls, done, 1000000000);
        if (slot->call.op == FH_OP_FRAME) return &slot->call;
        uint32_t op = slot->call.op;
        fh_answer(filter, FH_DONE);
        if (op == FH_OP_STOP) return NULL;
    }
}

/// A row of a frame.
static inline uint8_t *fh_row(struct fh_filter *filter, const struct fh_call *call, uint32_t plane, uint32_t row) {
    const struct fh_plane *it = &filter->control->plane[plane];
    return filter->buffers + call->buffer * filter->control->buffer_bytes + it->offset + (uint64_t)row * it->stride;
}

#endif
