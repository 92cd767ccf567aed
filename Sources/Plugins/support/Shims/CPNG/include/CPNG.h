// SPDX-License-Identifier: Apache-2.0

// libpng for Swift (Debian: libpng-dev).
#ifndef CPNG_H
#define CPNG_H

#include <png.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A png_image ready for png_image_begin_read_from_*: all zero but for its version, which is a macro Swift does not import in a struct.
static inline void fh_png_begin(png_image *image) {
    memset(image, 0, sizeof *image);
    image->version = PNG_IMAGE_VERSION;
}

// PNG_FORMAT_RGBA, a macro of macros.
static inline png_uint_32 fh_png_format_rgba(void) { return PNG_FORMAT_RGBA; }

// `message` is an array inside the struct, which Swift imports as a tuple.
static inline const char *fh_png_message(const png_image *image) { return image->message; }

/// A file in memory that grows as it is written (realloc). Zero at first; freed with `free(bytes)`.
typedef struct fh_png_bytes {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
} fh_png_bytes;

/// When a picture was taken, for the chunk tIME; a year of 0 writes none.
typedef struct fh_png_date {
    uint16_t year;
    uint8_t month, day, hour, minute, second;
} fh_png_date;

/// Writes rows of blue, green, red and a fourth byte that is ignored as an RGB picture of 8 bits into `out`, from its beginning. libpng leaves by
/// longjmp, which must not pass through Swift. 0, or -1 with libpng's words in `message`.
int fh_png_write_bgrx(
    fh_png_bytes *out, const uint8_t *rows, size_t stride, uint32_t width, uint32_t height, int level, int filters, const uint8_t *exif,
    uint32_t exif_bytes, fh_png_date date, char *message, size_t message_bytes);

#endif
