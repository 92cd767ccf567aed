// SPDX-License-Identifier: Apache-2.0

// libx264 for Swift (Debian: libx264-dev). Only what Swift's importer cannot do itself.
#ifndef CX264_H
#define CX264_H

#include <stdarg.h>
#include <stdint.h>
#include <x264.h>

// x264_encoder_open is a macro that pastes the build number to the name; the importer cannot follow it.
static inline x264_t *fh_x264_open(x264_param_t *parameters) { return x264_encoder_open(parameters); }

// A picture's planes are C arrays, which Swift sees as tuples without an index.
static inline void fh_x264_set_plane(x264_picture_t *picture, int index, const uint8_t *base, int stride_bytes) {
    picture->img.plane[index] = (uint8_t *)base;
    picture->img.i_stride[index] = stride_bytes;
}

// x264 hands its log lines over as a format and a va_list, which Swift cannot print: this is where a finished line goes.
typedef struct {
    void *owner;
    void (*line)(void *owner, int level, const char *text);
} fh_x264_log;

// Makes x264 hand its lines of `level` and more severe ones to `log`, which lives as long as the encoder.
void fh_x264_set_log(x264_param_t *parameters, fh_x264_log *log, int level);

#endif
