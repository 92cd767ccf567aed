// SPDX-License-Identifier: Apache-2.0

// Libraries for sound, for Swift: libavcodec's encoders, libswresample, libebur128 (Debian: libavcodec-dev, libavutil-dev,
// libswresample-dev, libebur128-dev). Only what Swift's importer cannot do itself.
#ifndef CAUDIO_H
#define CAUDIO_H

#include <ebur128.h>
#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>

// Macros with casts or function-like macros in them are not imported.
static const int fh_audio_eof = AVERROR_EOF;
static const int fh_audio_again = AVERROR(EAGAIN);

// The measurements that a meter makes: enumerators of a C enum are not one integer in Swift. The histogram needs no
// more memory with each second, as the list of blocks would.
static const int fh_ebur128_modes =
    EBUR128_MODE_M | EBUR128_MODE_S | EBUR128_MODE_I | EBUR128_MODE_TRUE_PEAK | EBUR128_MODE_HISTOGRAM;

// The positions of a layout, one bit each; 0 where it does not name them (a union is not imported by its members).
static inline uint64_t fh_audio_mask(const AVChannelLayout *layout) {
    return layout->order == AV_CHANNEL_ORDER_NATIVE ? layout->u.mask : 0;
}

#endif
