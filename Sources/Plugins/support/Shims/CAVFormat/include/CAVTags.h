// SPDX-License-Identifier: Apache-2.0

// What a file says beside its pictures and its sound, where Swift cannot reach it: arrays in structs, and side data, whose functions
// differ between libav 5, 6 and 7.
#ifndef CAVTAGS_H
#define CAVTAGS_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mastering_display_metadata.h>

// How many pieces of side data a stream has.
static inline int fh_av_side_data_count(const AVStream *stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    return stream->codecpar->nb_coded_side_data;
#else
    return stream->nb_side_data;
#endif
}

// One of them.
static inline AVPacketSideData fh_av_side_data(const AVStream *stream, int index) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    return stream->codecpar->coded_side_data[index];
#else
    return stream->side_data[index];
#endif
}

// Adds a copy of some side data; NULL without memory.
static inline uint8_t *fh_av_add_side_data(AVStream *stream, enum AVPacketSideDataType type, size_t size) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    AVPacketSideData *data = av_packet_side_data_new(
        &stream->codecpar->coded_side_data, &stream->codecpar->nb_coded_side_data, type, size, 0);
    return data ? data->data : NULL;
#else
    return av_stream_new_side_data(stream, type, size);
#endif
}

// HDR10: steps of 0.00002 for colours, of 0.0001 cd/m² for luminance, cd/m² for light levels.
typedef struct fh_av_hdr {
    int has_display, has_light;
    uint16_t red_x, red_y, green_x, green_y, blue_x, blue_y, white_x, white_y;
    uint32_t maximum, minimum;
    uint16_t light_maximum, light_average;
} fh_av_hdr;

static inline int64_t fh_av_steps(AVRational value, int per_unit, int64_t most) {
    int64_t steps = value.den > 0 && value.num >= 0 ? av_rescale(value.num, per_unit, value.den) : 0;
    return steps > most ? most : steps;
}

static inline void fh_av_take_display(fh_av_hdr *hdr, const uint8_t *data, size_t size) {
    if (hdr->has_display || !data || size < sizeof(AVMasteringDisplayMetadata)) return;
    const AVMasteringDisplayMetadata *display = (const AVMasteringDisplayMetadata *)data;
    if (!display->has_primaries || !display->has_luminance) return;
    const AVRational(*colours)[2] = display->display_primaries;
    hdr->red_x = fh_av_steps(colours[0][0], 50000, 65535);
    hdr->red_y = fh_av_steps(colours[0][1], 50000, 65535);
    hdr->green_x = fh_av_steps(colours[1][0], 50000, 65535);
    hdr->green_y = fh_av_steps(colours[1][1], 50000, 65535);
    hdr->blue_x = fh_av_steps(colours[2][0], 50000, 65535);
    hdr->blue_y = fh_av_steps(colours[2][1], 50000, 65535);
    hdr->white_x = fh_av_steps(display->white_point[0], 50000, 65535);
    hdr->white_y = fh_av_steps(display->white_point[1], 50000, 65535);
    hdr->maximum = fh_av_steps(display->max_luminance, 10000, UINT32_MAX);
    hdr->minimum = fh_av_steps(display->min_luminance, 10000, UINT32_MAX);
    hdr->has_display = 1;
}

static inline void fh_av_take_light(fh_av_hdr *hdr, const uint8_t *data, size_t size) {
    if (hdr->has_light || !data || size < sizeof(AVContentLightMetadata)) return;
    const AVContentLightMetadata *light = (const AVContentLightMetadata *)data;
    hdr->light_maximum = light->MaxCLL > 65535 ? 65535 : light->MaxCLL;
    hdr->light_average = light->MaxFALL > 65535 ? 65535 : light->MaxFALL;
    hdr->has_light = 1;
}

// Adds what a stream says of it to what is known already.
static inline void fh_av_take_stream_hdr(fh_av_hdr *hdr, const AVStream *stream) {
    for (int index = 0; index < fh_av_side_data_count(stream); index++) {
        AVPacketSideData data = fh_av_side_data(stream, index);
        if (data.type == AV_PKT_DATA_MASTERING_DISPLAY_METADATA) fh_av_take_display(hdr, data.data, data.size);
        if (data.type == AV_PKT_DATA_CONTENT_LIGHT_LEVEL) fh_av_take_light(hdr, data.data, data.size);
    }
}

// The same for a decoded picture.
static inline void fh_av_take_picture_hdr(fh_av_hdr *hdr, const AVFrame *picture) {
    const AVFrameSideData *display = av_frame_get_side_data(picture, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
    const AVFrameSideData *light = av_frame_get_side_data(picture, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
    if (display) fh_av_take_display(hdr, display->data, display->size);
    if (light) fh_av_take_light(hdr, light->data, light->size);
}

// Describes a stream that is written; 0, or an AVERROR without memory.
static inline int fh_av_set_stream_hdr(AVStream *stream, const fh_av_hdr *hdr) {
    if (hdr->has_display) {
        uint8_t *data = fh_av_add_side_data(
            stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, sizeof(AVMasteringDisplayMetadata));
        if (!data) return AVERROR(ENOMEM);
        AVMasteringDisplayMetadata display = {
            .display_primaries = {
                {{hdr->red_x, 50000}, {hdr->red_y, 50000}},
                {{hdr->green_x, 50000}, {hdr->green_y, 50000}},
                {{hdr->blue_x, 50000}, {hdr->blue_y, 50000}},
            },
            .white_point = {{hdr->white_x, 50000}, {hdr->white_y, 50000}},
            .max_luminance = {(int)(hdr->maximum > INT32_MAX ? INT32_MAX : hdr->maximum), 10000},
            .min_luminance = {(int)(hdr->minimum > INT32_MAX ? INT32_MAX : hdr->minimum), 10000},
            .has_primaries = 1, .has_luminance = 1,
        };
        *(AVMasteringDisplayMetadata *)data = display;
    }
    if (hdr->has_light) {
        uint8_t *data = fh_av_add_side_data(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, sizeof(AVContentLightMetadata));
        if (!data) return AVERROR(ENOMEM);
        *(AVContentLightMetadata *)data = (AVContentLightMetadata){.MaxCLL = hdr->light_maximum, .MaxFALL = hdr->light_average};
    }
    return 0;
}

// The closed captions of a decoded picture (ATSC A/53 cc_data); NULL where it has none.
static inline const uint8_t *fh_av_picture_captions(const AVFrame *picture, size_t *size) {
    const AVFrameSideData *data = av_frame_get_side_data(picture, AV_FRAME_DATA_A53_CC);
    *size = data ? data->size : 0;
    return data ? data->data : NULL;
}

// A chapter that is written, to which tags can be added; NULL without memory. Freed with the context.
static inline AVChapter *fh_av_add_chapter(AVFormatContext *context, AVRational ticks, int64_t begin, int64_t end) {
    AVChapter *chapter = av_mallocz(sizeof(AVChapter));
    if (!chapter) return NULL;
    *chapter = (AVChapter){.id = context->nb_chapters, .time_base = ticks, .start = begin, .end = end};
    AVChapter **chapters = av_realloc_array(context->chapters, context->nb_chapters + 1, sizeof(AVChapter *));
    if (!chapters) {
        av_free(chapter);
        return NULL;
    }
    context->chapters = chapters;
    chapters[context->nb_chapters++] = chapter;
    return chapter;
}

#endif
