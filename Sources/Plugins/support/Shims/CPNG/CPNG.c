// SPDX-License-Identifier: Apache-2.0

#include "CPNG.h"

#include <setjmp.h>
#include <stdio.h>

typedef struct writer {
    fh_png_bytes *out;
    char *message;
    size_t message_bytes;
} writer;

static void on_error(png_structp png, png_const_charp words) {
    const writer *const writer = png_get_error_ptr(png);
    snprintf(writer->message, writer->message_bytes, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words) {
    (void)png;
    (void)words;
}

static void on_bytes(png_structp png, png_bytep bytes, size_t count) {
    fh_png_bytes *const out = ((const writer *)png_get_io_ptr(png))->out;
    if (count > out->capacity - out->count) {
        size_t capacity = out->capacity < 65536 ? 65536 : out->capacity;
        while (capacity - out->count < count) {
            if (capacity > SIZE_MAX / 2) png_error(png, "out of memory");
            capacity *= 2;
        }
        uint8_t *const larger = realloc(out->bytes, capacity);
        if (larger == NULL) png_error(png, "out of memory");
        out->bytes = larger;
        out->capacity = capacity;
    }
    memcpy(out->bytes + out->count, bytes, count);
    out->count += count;
}

static void on_flush(png_structp png) { (void)png; }

int fh_png_write_bgrx(
    fh_png_bytes *out, const uint8_t *rows, size_t stride, uint32_t width, uint32_t height, int level, int filters, const uint8_t *exif,
    uint32_t exif_bytes, fh_png_date date, char *message, size_t message_bytes
) {
    writer writer = {out, message, message_bytes};
    out->count = 0;
    snprintf(message, message_bytes, "out of memory");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_error, on_warning);
    if (png == NULL) return -1;
    // Not changed between setjmp and longjmp, and so still there after it.
    png_infop const info = png_create_info_struct(png);
    if (info == NULL || setjmp(png_jmpbuf(png))) {
        png_infop gone = info;
        png_destroy_write_struct(&png, &gone);
        return -1;
    }
    png_set_write_fn(png, &writer, on_bytes, on_flush);
    png_set_IHDR(
        png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, level);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, filters);
    // libpng takes it as writable and only copies it.
    if (exif_bytes > 0) png_set_eXIf_1(png, info, exif_bytes, (png_bytep)exif);
    if (date.year > 0) {
        const png_time time = {date.year, date.month, date.day, date.hour, date.minute, date.second};
        png_set_tIME(png, info, &time);
    }
    png_write_info(png, info);
    png_set_bgr(png);
    png_set_filler(png, 0, PNG_FILLER_AFTER);
    for (uint32_t y = 0; y < height; y++) png_write_row(png, rows + y * stride);
    // Given the information, libpng would write eXIf a second time, after the picture.
    png_write_end(png, NULL);
    png_infop done = info;
    png_destroy_write_struct(&png, &done);
    return 0;
}
