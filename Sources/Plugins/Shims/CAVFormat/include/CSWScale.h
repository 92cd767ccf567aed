// libswscale for Swift (Debian: libswscale-dev). Only what Swift's importer cannot do itself.
#ifndef CSWSCALE_H
#define CSWSCALE_H

#include <libavutil/frame.h>
#include <libswscale/swscale.h>

// Arrays in an AVFrame are tuples without an index in Swift, and sws_scale takes arrays of planes: a whole picture to I420.
static inline int fh_sws_to_i420(
    struct SwsContext *scaler, const AVFrame *picture, uint8_t *y, int y_stride, uint8_t *u, int u_stride, uint8_t *v, int v_stride) {
    uint8_t *const planes[4] = {y, u, v, 0};
    const int strides[4] = {y_stride, u_stride, v_stride, 0};
    return sws_scale(scaler, (const uint8_t *const *)picture->data, picture->linesize, 0, picture->height, planes, strides);
}

#endif
