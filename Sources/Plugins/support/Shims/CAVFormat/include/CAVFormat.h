// SPDX-License-Identifier: Apache-2.0

// libavformat, libavcodec, libavutil, libswresample for Swift (Debian: libavformat-dev, libavcodec-dev, libavutil-dev, libswresample-dev).
// Only what Swift's importer cannot do itself.
#ifndef CAVFORMAT_H
#define CAVFORMAT_H

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/base64.h>
#include <libavutil/display.h>
#include <libavutil/hash.h>
#include <libavutil/imgutils.h>
#include <libavutil/murmur3.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>

// Macros with casts or function-like macros in them are not imported.
static const int64_t fh_av_no_pts = AV_NOPTS_VALUE;
static const int fh_averror_eof = AVERROR_EOF;
static const int fh_averror_invalid_data = AVERROR_INVALIDDATA;
static const int fh_averror_again = AVERROR(EAGAIN);
static const int fh_averror_no_memory = AVERROR(ENOMEM);
static const int fh_averror_exit = AVERROR_EXIT;
static const int fh_averror_unauthorized = AVERROR_HTTP_UNAUTHORIZED;
static const int fh_averror_forbidden = AVERROR_HTTP_FORBIDDEN;
static const int fh_averror_not_found = AVERROR_HTTP_NOT_FOUND;
static const int fh_averror_bad_request = AVERROR_HTTP_BAD_REQUEST;
static const int fh_averror_other_request = AVERROR_HTTP_OTHER_4XX;
static const int fh_averror_server = AVERROR_HTTP_SERVER_ERROR;
static const int fh_averror_no_protocol = AVERROR_PROTOCOL_NOT_FOUND;

// AVERROR is a function-like macro; this is the way back, to an errno, or 0 for a code that is not one.
static inline int fh_averror_errno(int code) { return code < 0 && code > -4096 ? AVUNERROR(code) : 0; }

// Bytes of the largest packet in a track's index, and how many packets are in it (sizes are bit fields).
static inline int fh_av_largest_indexed(AVStream *stream, int *count) {
    int largest = 0;
    *count = avformat_index_get_entries_count(stream);
    for (int index = 0; index < *count; index++) {
        const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
        if (entry && entry->size > largest) largest = entry->size;
    }
    return largest;
}

// How many packets a track's index has (0: none), how many of them an edit list does not hide, and how many come after
// the last one that begins at the file offset `position` (-1: none begins there). Flags are bit fields.
static inline int fh_av_index(AVStream *stream, int64_t position, int *shown, int *after) {
    int count = avformat_index_get_entries_count(stream);
    *shown = 0;
    *after = -1;
    for (int index = 0; index < count; index++) {
        const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
        if (!entry) continue;
        if (!(entry->flags & AVINDEX_DISCARD_FRAME)) ++*shown;
        if (entry->pos == position) *after = count - 1 - index;
    }
    return count;
}

// Marks the entries of a track's index that are needed: those that are shown, and those that an edit list hides before
// one that is shown with less than `keyframes` keyframes between. Gives the number of hidden ones that are needed.
static inline int fh_av_index_needed(AVStream *stream, int keyframes, uint8_t *needed) {
    int left = 0, hidden = 0;
    for (int index = avformat_index_get_entries_count(stream) - 1; index >= 0; index--) {
        const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
        int is_shown = entry && !(entry->flags & AVINDEX_DISCARD_FRAME);
        if (is_shown) left = keyframes;
        needed[index] = left > 0;
        if (left > 0 && !is_shown) hidden++;
        if (left > 0 && entry && (entry->flags & AVINDEX_KEYFRAME)) left--;
    }
    return hidden;
}

// Whether an entry of a track's index is this packet.
static inline int fh_av_index_is(AVStream *stream, int index, const AVPacket *packet) {
    const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
    return entry && entry->pos == packet->pos && entry->timestamp == packet->dts;
}

// How many packets at the begin of a track's index an edit list hides.
static inline int fh_av_index_hidden_first(AVStream *stream) {
    int count = avformat_index_get_entries_count(stream), index = 0;
    for (; index < count; index++) {
        const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
        if (!entry || !(entry->flags & AVINDEX_DISCARD_FRAME)) break;
    }
    return index;
}

// The time of an entry of a track's index, in its ticks.
static inline int64_t fh_av_index_tick(AVStream *stream, int index) {
    const AVIndexEntry *entry = avformat_index_get_entry(stream, index);
    return entry ? entry->timestamp : AV_NOPTS_VALUE;
}

// Arrays in an AVFrame are tuples without an index in Swift: copies `rows` rows of `row_bytes` bytes of one plane.
static inline void fh_av_copy_plane(
    const AVFrame *picture, int plane, uint8_t *target, ptrdiff_t target_stride, ptrdiff_t row_bytes, int rows) {
    av_image_copy_plane(target, (int)target_stride, picture->data[plane], picture->linesize[plane], (int)row_bytes, rows);
}

// From here until fh_av_log_end on the same thread, the last error or warning that this thread causes in libav is
// kept, or the first one about a certificate. libav prints nothing from then on. av_log's callback takes a va_list,
// which Swift cannot print.
void fh_av_log_begin(void);

// Ends fh_av_log_begin. `text` gets the last line that was kept, without its line end.
void fh_av_log_end(char *text, size_t capacity);

// How many packets of RTP and segments of HLS libavformat has given up on this thread since the last call.
struct fh_av_missed {
    int packets;
    int segments;
};
struct fh_av_missed fh_av_missed_take(void);

// libav prints nothing from here on, on any thread.
void fh_av_log_quiet(void);

// What a decoder finds wrong while it decodes, counted instead of printed: an AVCodecContext has it in `opaque`, for itself and
// its threads. Decoders guess what is missing, and many say so nowhere else. Made with malloc; `owner` is for the caller.
struct fh_av_complaints;
struct fh_av_complaints *fh_av_complaints_make(void *owner);

// How many there were since the last call. [any thread]
int fh_av_complaints_take(struct fh_av_complaints *complaints);

void *fh_av_complaints_owner(const struct fh_av_complaints *complaints);

// Which certificates of TLS servers are accepted.
struct fh_av_trust {
    int verify;
    char *ca_file; // NULL: the system's authorities
};

// Applies to everything that `context`, which was just allocated, opens; `trust` must outlive it.
void fh_av_apply(struct fh_av_trust *trust, AVFormatContext *context);

#endif
