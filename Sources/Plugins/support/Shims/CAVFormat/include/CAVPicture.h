// SPDX-License-Identifier: Apache-2.0

// What the members of a decoded picture, a stream and a decoder are called in libav 5, 6 and 7, where their names differ, and what Swift
// cannot reach: arrays in structs, macros, inline functions.
#ifndef CAVPICTURE_H
#define CAVPICTURE_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/cpu.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>

// Ticks for which a picture is to be shown, 0 when unknown (AVFrame.duration since libavutil 57.30).
static inline int64_t fh_av_picture_duration(const AVFrame *picture) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    return picture->duration > 0 ? picture->duration : 0;
#else
    return picture->pkt_duration > 0 ? picture->pkt_duration : 0;
#endif
}

// AV_FRAME_FLAG_INTERLACED and AV_FRAME_FLAG_KEY since libavutil 58.7.
static inline int fh_av_picture_is_interlaced(const AVFrame *picture) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return (picture->flags & AV_FRAME_FLAG_INTERLACED) != 0;
#else
    return picture->interlaced_frame != 0;
#endif
}

static inline int fh_av_picture_is_key(const AVFrame *picture) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return (picture->flags & AV_FRAME_FLAG_KEY) != 0;
#else
    return picture->key_frame != 0;
#endif
}

// What a decoder says of a picture that was alone in its packet.
static inline void fh_av_describe_still(AVFrame *picture, const AVPacket *packet) {
    picture->pts = packet->pts;
    picture->pkt_dts = packet->dts;
    picture->best_effort_timestamp = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    picture->pict_type = AV_PICTURE_TYPE_I;
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    picture->duration = packet->duration;
#else
    picture->pkt_duration = packet->duration;
#endif
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    picture->flags |= AV_FRAME_FLAG_KEY;
#else
    picture->key_frame = 1;
#endif
}

// The nine numbers of a track's display matrix, or NULL (side data moved to the codec parameters in libavformat 60.15).
static inline const int32_t *fh_av_stream_matrix(const AVStream *stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)data->data : NULL;
#else
    size_t size = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    return data && size >= 9 * sizeof(int32_t) ? (const int32_t *)data : NULL;
#endif
}

// The same for one picture, where the bitstream has one (H.264 and HEVC: display orientation SEI; JPEG: Exif).
static inline const int32_t *fh_av_picture_matrix(const AVFrame *picture) {
    const AVFrameSideData *data = av_frame_get_side_data(picture, AV_FRAME_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)data->data : NULL;
}

// Callbacks of this decoder may come from its frame threads (always so since libavcodec 60).
static inline void fh_av_allow_callbacks_from_threads(AVCodecContext *decoder) {
#if LIBAVCODEC_VERSION_MAJOR < 60
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    decoder->thread_safe_callbacks = 1;
    _Pragma("GCC diagnostic pop")
#else
    (void)decoder;
#endif
}

// Where the planes of a picture lie.
typedef struct fh_av_planes {
    uint8_t *data[4];
    int stride[4];
} fh_av_planes;

static inline fh_av_planes fh_av_no_planes(void) { return (fh_av_planes){{0}, {0}}; }

static inline void fh_av_add_plane(fh_av_planes *planes, int index, uint8_t *data, ptrdiff_t stride) {
    planes->data[index] = data;
    planes->stride[index] = (int)stride;
}

// In a get_buffer2 callback: the picture's planes lie in `buffer`, which it now owns.
static inline void fh_av_use_buffer(AVFrame *picture, AVBufferRef *buffer, fh_av_planes planes) {
    for (int index = 0; index < 4; index++) {
        picture->data[index] = planes.data[index];
        picture->linesize[index] = planes.stride[index];
    }
    picture->extended_data = picture->data;
    picture->buf[0] = buffer;
}

// Fills a picture with black.
static inline int fh_av_fill_black(fh_av_planes planes, enum AVPixelFormat format, enum AVColorRange range, int width, int height) {
    const ptrdiff_t strides[4] = {planes.stride[0], planes.stride[1], planes.stride[2], planes.stride[3]};
    return av_image_fill_black(planes.data, strides, format, range, width, height);
}

#endif
