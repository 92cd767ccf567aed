// SPDX-License-Identifier: Apache-2.0

#include "CAVFormat.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One for each thread that keeps lines. Lines that libav writes on other threads are dropped, since they may name
// what must not be shown.
static _Thread_local char last_line[512];
static _Thread_local int keeps;

struct fh_av_complaints {
    uint64_t mark;
    void *owner;
    atomic_int count;
};

// Another user of libav in this process may keep something else in `opaque`.
static const uint64_t fh_av_complaints_mark = 0x66685f6176636f31;

// May be called from any of libav's threads.
// Counts what a decoder finds wrong, for the decoder that it belongs to. Its threads have contexts of their own, with the same
// `opaque`.
static void count_complaint(void *context, int level) {
    if (!context || level > AV_LOG_ERROR || *(const AVClass **)context != avcodec_get_class()) return;
    struct fh_av_complaints *complaints = ((AVCodecContext *)context)->opaque;
    if (complaints && complaints->mark == fh_av_complaints_mark) atomic_fetch_add_explicit(&complaints->count, 1, memory_order_relaxed);
}

// One for each thread that reads a stream.
static _Thread_local struct fh_av_missed missed;

// After a gap of as many packets a sender has begun anew (RFC 3550, A.1: MAX_DROPOUT). As many segments are hours.
static const int most_missed = 3000;

static void add_missed(int *sum, int64_t count) {
    if (count > 0 && count < most_missed && *sum <= INT_MAX - count) *sum += (int)count;
}

// libavformat says only in its log what it has given up: packets of RTP (rtp_parse_queued_packet), and segments of HLS that
// the server does not have, or no longer (hls.c, read_data).
static void count_missed(int level, const char *format, va_list arguments) {
    if (level != AV_LOG_WARNING) return;
    va_list copy;
    va_copy(copy, arguments);
    if (!strcmp(format, "RTP: missed %d packets\n")) add_missed(&missed.packets, va_arg(copy, int));
    if (!strcmp(format, "skipping %" PRId64 " segments ahead, expired from playlists\n")) add_missed(&missed.segments, va_arg(copy, int64_t));
    if (!strcmp(format, "Failed to open segment %" PRId64 " of playlist %d\n")) add_missed(&missed.segments, 1);
    va_end(copy);
}

static void fh_av_log_keep(void *context, int level, const char *format, va_list arguments) {
    count_complaint(context, level);
    count_missed(level, format, arguments);
    if (!keeps || level > AV_LOG_WARNING) return;
    char text[sizeof last_line];
    // A line about a certificate is the cause of the lines that follow it.
    if (strstr(last_line, "ertificate")) return;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    if (text[0]) memcpy(last_line, text, sizeof text);
}

struct fh_av_complaints *fh_av_complaints_make(void *owner) {
    struct fh_av_complaints *made = calloc(1, sizeof *made);
    if (made) made->mark = fh_av_complaints_mark, made->owner = owner;
    return made;
}

void *fh_av_complaints_owner(const struct fh_av_complaints *complaints) { return complaints->owner; }

int fh_av_complaints_take(struct fh_av_complaints *complaints) {
    return atomic_exchange_explicit(&complaints->count, 0, memory_order_relaxed);
}

void fh_av_log_quiet(void) { av_log_set_callback(fh_av_log_keep); }

struct fh_av_missed fh_av_missed_take(void) {
    // Another plugin's copy of this file may have put its own callback in place.
    fh_av_log_quiet();
    struct fh_av_missed taken = missed;
    missed = (struct fh_av_missed){0};
    return taken;
}

void fh_av_log_begin(void) {
    last_line[0] = 0;
    keeps = 1;
    fh_av_log_quiet();
}

void fh_av_log_end(char *text, size_t capacity) {
    keeps = 0;
    snprintf(text, capacity, "%s", last_line);
}

typedef int open_part(AVFormatContext *, AVIOContext **, const char *, int, AVDictionary **);

// libavformat's own function, the same in every context.
static open_part *_Atomic plain_open;

// A format passes on only a few of its options to what it opens (hls: none of TLS), so they are added each time.
static int open_trusting(AVFormatContext *context, AVIOContext **io, const char *url, int flags, AVDictionary **options) {
    const struct fh_av_trust *trust = context->opaque;
    AVDictionary *own = NULL;
    AVDictionary **all = options ? options : &own;
    av_dict_set(all, "tls_verify", trust->verify ? "1" : "0", 0);
    if (trust->ca_file) av_dict_set(all, "ca_file", trust->ca_file, 0);
    int result = plain_open(context, io, url, flags, all);
    av_dict_free(&own);
    return result;
}

void fh_av_apply(struct fh_av_trust *trust, AVFormatContext *context) {
    plain_open = context->io_open;
    context->opaque = trust;
    context->io_open = open_trusting;
}
