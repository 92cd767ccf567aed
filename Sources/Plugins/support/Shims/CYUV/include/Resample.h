// SPDX-License-Identifier: Apache-2.0

// Bilinear scaling and turning of planes, in steps that the caller puts together. It adds to libyuv, which scales
// columns one after the other and turns interleaved chroma only into planes. x86-64 from SSSE3 on has vector code;
// elsewhere the plain C does the same, bit for bit.
#ifndef FH_RESAMPLE_H
#define FH_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

/// How sixteen bytes of an output row are made: each half from sixteen bytes of the input row, each byte from two of them.
typedef struct fh_resample_group {
    /// Where the two are, counted from the half's `offset`; 0...15.
    uint8_t from[32];
    /// How much each counts; the two add up to 128.
    uint8_t weights[32];
    int32_t offset[2];
} fh_resample_group;

_Static_assert(sizeof(fh_resample_group) == 72, "no padding");

/// `(a * (128 - weight) + b * weight) / 128`, rounded to nearest, less 128. `weight` is 0...127.
void fh_resample_blend(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight);

/// An output row from a row of `fh_resample_blend`, which can be read 16 bytes beyond its end. One group for every
/// sixteen bytes, and one for a rest.
void fh_resample_columns(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups);

/// Writes columns as rows: sample `x` of row `y` of the input is sample `y` of row `x` of the output. `unit` bytes a sample: 1, 2 or 4.
void fh_transpose(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit);

/// The same without vector code, for tests to compare.
void fh_resample_blend_plain(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t bytes, int weight);
void fh_resample_columns_plain(uint8_t *out, size_t bytes, const uint8_t *row, const fh_resample_group *groups);
void fh_transpose_plain(
    uint8_t *out, ptrdiff_t out_stride, const uint8_t *in, ptrdiff_t in_stride, size_t columns, size_t rows, size_t unit);

/// Asks for memory that will soon be read. Rows of a part of a picture are too short for the processor to see the pattern.
static inline void fh_prefetch(const uint8_t *row, size_t bytes) {
    for (size_t x = 0; x < bytes; x += 64) __builtin_prefetch(row + x);
}

#endif
