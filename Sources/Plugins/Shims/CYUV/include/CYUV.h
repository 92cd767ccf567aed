// libyuv for Swift (Debian: libyuv-dev; no pkg-config file). Only what Swift's importer cannot do itself.
#ifndef CYUV_H
#define CYUV_H

#include <libyuv.h>

// The constants are globals of a type that is incomplete in C, which Swift does not import; libyuv takes their addresses.
// yuv: for blue first in memory ("ARGB", "RGB24"); yvu: for red first ("RAW"), with U and V handed over swapped.
typedef struct {
    const struct YuvConstants *yuv;
    const struct YuvConstants *yvu;
} fh_yuv_matrix;

static inline fh_yuv_matrix fh_yuv_bt601(int is_full) {
    return is_full ? (fh_yuv_matrix){&kYuvJPEGConstants, &kYvuJPEGConstants}
                   : (fh_yuv_matrix){&kYuvI601Constants, &kYvuI601Constants};
}

static inline fh_yuv_matrix fh_yuv_bt709(int is_full) {
    return is_full ? (fh_yuv_matrix){&kYuvF709Constants, &kYvuF709Constants}
                   : (fh_yuv_matrix){&kYuvH709Constants, &kYvuH709Constants};
}

static inline fh_yuv_matrix fh_yuv_bt2020(int is_full) {
    return is_full ? (fh_yuv_matrix){&kYuvV2020Constants, &kYvuV2020Constants}
                   : (fh_yuv_matrix){&kYuv2020Constants, &kYvu2020Constants};
}

#endif
