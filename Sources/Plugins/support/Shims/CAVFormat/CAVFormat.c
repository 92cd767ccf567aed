// SPDX-License-Identifier: Apache-2.0

#include "CAVFormat.h"

#include <stdio.h>
#include <string.h>

// One for each thread that keeps lines. Lines that libav writes on other threads are dropped, since they may name
// what must not be shown.
static _Thread_local char last_line[512];
static _Thread_local int keeps;

// May be called from any of libav's threads.
static void fh_av_log_keep(void *context, int level, const char *format, va_list arguments) {
    (void)context;
    if (!keeps || level > AV_LOG_WARNING) return;
    char text[sizeof last_line];
    // A line about a certificate is the cause of the lines that follow it.
    if (strstr(last_line, "ertificate")) return;
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

typedef int open_part(AVFormatContext *, AVIOContext **, const char *, int, AVDictionary **);

// libavformat's own function, the same in every context.
static open_part *_Atomic plain_open;

// A format passes on only a few of its options to what it opens (hls: none of TLS), so they are added each time.
static int open_trusting(AVFormatContext *context, AVIOContext **io, const char *url, int flags, AVDictionary **options) {
    const struct fh_av_trust *trust = context->opaque;
    AVDictionary *own = NULL;
    AVDictionary **all = options ? options : &own;
    av_dict_set(all, "tls_verify", trust->verify ? "1" : "0", 0);
    if (trust->ca_file) av_dict_set(all, "ca_file", trust->ca_file, 0);
    int result = plain_open(context, io, url, flags, all);
    av_dict_free(&own);
    return result;
}

void fh_av_apply(struct fh_av_trust *trust, AVFormatContext *context) {
    plain_open = context->io_open;
    context->opaque = trust;
    context->io_open = open_trusting;
}
