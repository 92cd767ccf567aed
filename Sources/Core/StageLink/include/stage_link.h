// SPDX-License-Identifier: Apache-2.0
// The protocol between framehost and a stage in a process of its own, version 1: docs/stage-protocol.md.
//
// The process inherits three descriptors: FH_LINK_SOCKET, on which JSON objects are exchanged (SOCK_SEQPACKET, one object
// in each message); FH_LINK_CONTROL, which holds a struct fh_control; and FH_LINK_BUFFERS, with the frames.
// A filter in C needs this header and libc: examples/filters/invert.c.
#ifndef FRAMEHOST_STAGE_LINK_H
#define FRAMEHOST_STAGE_LINK_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FH_LINK_VERSION = 1,
    FH_LINK_SOCKET = 3,
    FH_LINK_CONTROL = 4,
    FH_LINK_BUFFERS = 5,
    FH_LINK_SLOTS = 8,
    FH_LINK_TEXT = 16384,     // bytes of text or metadata with a call or a reply
    FH_LINK_MESSAGE = 65536,  // the longest message on the socket, in bytes
};

// What the host asks. Frames: `buffer` says where the frame lies. Otherwise the call's text is JSON.
enum fh_op { FH_OP_FRAME = 1, FH_OP_SET, FH_OP_COMMAND, FH_OP_RELEASE_CACHES, FH_OP_STOP };

// What the stage answers. With FH_FAILED and FH_FAULT the reply's text is JSON: { "faults": [{ "what", "remedy", "cause" }] }.
// FH_FAILED ends the stage. FH_FAULT is about this frame alone, whose pixels do not count.
enum fh_verdict { FH_FORWARD = 1, FH_DROP, FH_DONE, FH_FAILED, FH_FAULT };

enum fh_flags {
    FH_DISCONTINUITY = 1,  // frames are missing before this one
    FH_KEYFRAME = 2,
    FH_SUBSTITUTE = 4,  // a slate or a repeated picture in place of a camera's
    FH_MIRRORED_IN_PREVIEWS = 8,
    FH_TURNED = 16,  // `orientation` holds (Exif 2.32, tag Orientation)
};

struct fh_item {
    int64_t pts, duration, captured_at;  // nanoseconds
    uint64_t number, metadata;           // a bit for each kind of metadata that is there
    uint32_t flags, orientation;
};

struct fh_call {
    uint32_t op, buffer, text_bytes, reserved;
    struct fh_item item;
};

struct fh_reply {
    uint32_t verdict, reason, text_bytes, reserved;
    uint64_t held;  // a bit for each buffer that the stage goes on reading
    struct fh_item item;
};

// Both counters only rise. A call is made when `calls` is one more than `replies`, and answered when they are equal. Each
// side waits on the other's counter (futex(2), not FUTEX_PRIVATE_FLAG).
struct fh_slot {
    _Alignas(64) uint32_t calls;
    _Alignas(64) uint32_t replies;
    _Alignas(64) struct fh_call call;
    _Alignas(64) struct fh_reply reply;
};

// Where a plane lies in a buffer, in bytes.
struct fh_plane {
    uint64_t offset;
    uint32_t stride, rows, row_bytes, reserved;
};

// Behind it lie FH_LINK_TEXT bytes for the calls of each slot, and as many for its replies.
struct fh_control {
    uint32_t version, slots, buffers, starts;  // starts: whether the stage starts without being told
    uint64_t buffer_bytes;
    char pixel_format[16];  // "i420", as chain files have it
    uint32_t width, height, planes, reserved;
    struct fh_plane plane[4];
    struct fh_slot slot[FH_LINK_SLOTS];
};

static const uint64_t fh_control_bytes = sizeof(struct fh_control) + FH_LINK_SLOTS * 2 * FH_LINK_TEXT;

static inline uint8_t *fh_call_text(struct fh_control *control, int slot) {
    return (uint8_t *)(control + 1) + (2 * slot) * FH_LINK_TEXT;
}

static inline uint8_t *fh_reply_text(struct fh_control *control, int slot) {
    return (uint8_t *)(control + 1) + (2 * slot + 1) * FH_LINK_TEXT;
}

/// The counter at `word`, with what was written before it.
static inline uint32_t fh_load(uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

/// Makes what was written before visible, and then the counter.
static inline void fh_store(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

/// Waits while the counter is `value`, for so many nanoseconds at most; may return earlier.
static inline void fh_wait(uint32_t *word, uint32_t value, int64_t nanoseconds) {
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

/// Wakes whoever waits on the counter.
static inline void fh_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

#endif
