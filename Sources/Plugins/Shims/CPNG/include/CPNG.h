// libpng for Swift (Debian: libpng-dev).
#ifndef CPNG_H
#define CPNG_H

#include <png.h>
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

#endif
