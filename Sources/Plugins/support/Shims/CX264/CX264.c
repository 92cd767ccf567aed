// SPDX-License-Identifier: Apache-2.0

#include "CX264.h"

#include <stdio.h>
#include <string.h>

// Opaque tags of pictures are numbers stored in a pointer.
_Static_assert(sizeof(void *) >= sizeof(int64_t), "a picture's tag fits a pointer");

// Formats one line of x264's and hands it on without its line end.
static void fh_x264_format(void *owner, int level, const char *format, va_list arguments) {
    fh_x264_log *log = owner;
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    log->line(log->owner, level, text);
}

void fh_x264_set_log(x264_param_t *parameters, fh_x264_log *log, int level) {
    parameters->pf_log = fh_x264_format;
    parameters->p_log_private = log;
    parameters->i_log_level = level;
}
