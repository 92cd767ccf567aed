// SPDX-License-Identifier: Apache-2.0
// The host's side of stage_link.h: calls that Swift does not import, and access to members that it imports as tuples.
#ifndef FRAMEHOST_STAGE_LINK_HOST_H
#define FRAMEHOST_STAGE_LINK_HOST_H

#include "stage_link.h"

static inline uint32_t *fh_calls(struct fh_control *control, int slot) { return &control->slot[slot].calls; }
static inline uint32_t *fh_replies(struct fh_control *control, int slot) { return &control->slot[slot].replies; }
static inline struct fh_call *fh_call_of(struct fh_control *control, int slot) { return &control->slot[slot].call; }
static inline struct fh_reply *fh_reply_of(struct fh_control *control, int slot) { return &control->slot[slot].reply; }

/// The version of the protocol that the other side speaks.
static inline uint32_t fh_control_version(const struct fh_control *control) { return control->version; }
/// Writes what the control memory begins with. `format` is cut after 15 bytes.
void fh_control_begin(
    struct fh_control *control, uint32_t buffers, uint64_t buffer_bytes, const char *format, uint32_t width, uint32_t height);
/// Adds a plane, of which there are four at most.
void fh_control_add_plane(struct fh_control *control, struct fh_plane plane);
/// Says whether the stage starts without being told.
static inline void fh_control_set_starts(struct fh_control *control, uint32_t starts) { control->starts = starts; }
/// memfd_create(2) with close-on-exec, of `bytes`, sealed against other sizes. -1 with errno.
int fh_memory(const char *name, uint64_t bytes);
/// pidfd_open(2).
int fh_process(int pid);
/// prctl(2): the kernel kills the process when the thread that started it ends, and it gives it no core file and no new
/// rights. 0, or -1 with errno.
int fh_follow_parent(int parent);
/// seccomp(2): this process and those that it starts can open no socket but local ones (AF_UNIX), and no io_uring, for good.
/// Needs fh_follow_parent before it. 0, or -1 with errno; ENOSYS on processors whose calls are not known here.
int fh_forbid_network(void);

#endif
