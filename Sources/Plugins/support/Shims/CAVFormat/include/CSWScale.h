// SPDX-License-Identifier: Apache-2.0

// libswscale for Swift (Debian: libswscale-dev). Only what Swift's importer cannot do itself.
#ifndef CSWSCALE_H
#define CSWSCALE_H

#include <libavutil/frame.h>
#include <libswscale/swscale.h>

#include "CAVPicture.h"

// Scales a whole picture to other planes. Arrays in an AVFrame are tuples without an index in Swift, and sws_scale
// takes arrays of planes.
static inline int fh_sws_convert(struct SwsContext *scaler, const AVFrame *picture, fh_av_planes target) {
    return sws_scale(
        scaler, (const uint8_t *const *)picture->data, picture->linesize, 0, picture->height, target.data, target.stride);
}

#endif
