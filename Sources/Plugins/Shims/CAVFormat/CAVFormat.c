#include "CAVFormat.h"

#include <stdio.h>
#include <string.h>

// Of each thread that keeps lines; what any other thread's libav says is nobody's, and may name what is not to be shown.
static _Thread_local char last_line[512];
static _Thread_local int keeps;

// May be called from any of libav's threads.
static void fh_av_log_keep(void *context, int level, const char *format, va_list arguments) {
    (void)context;
    if (!keeps || level > AV_LOG_WARNING) return;
    char text[sizeof last_line];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    if (text[0]) memcpy(last_line, text, sizeof text);
}

void fh_av_log_quiet(void) { av_log_set_callback(fh_av_log_keep); }

void fh_av_log_begin(void) {
    last_line[0] = 0;
    keeps = 1;
    fh_av_log_quiet();
}

void fh_av_log_end(char *text, size_t capacity) {
    keeps = 0;
    snprintf(text, capacity, "%s", last_line);
}
