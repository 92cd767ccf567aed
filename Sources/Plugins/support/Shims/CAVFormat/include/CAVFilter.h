// SPDX-License-Identifier: Apache-2.0

// libavfilter for Swift. It is loaded when it is first needed, since its libraries cost start-up time that only a
// chain that deinterlaces should pay. (Debian: libavfilter-dev for the declarations, libavfilter8 when it runs.)
#ifndef CAVFILTER_H
#define CAVFILTER_H

#include <libavutil/frame.h>
#include <libavutil/rational.h>

// The library's file name, of the release that belongs to the libav this was built with.
const char *fh_av_filter_library(void);

// [control thread] Loads it; 0, or -1 with the loader's words in `text`. Safe to call again.
int fh_av_filter_load(char *text, size_t capacity);

// Pictures in, filtered pictures out.
typedef struct fh_av_filter fh_av_filter;

// After fh_av_filter_load. `description` as on ffmpeg's command line (-vf), without labels. 0 or an AVERROR.
int fh_av_filter_open(
    fh_av_filter **filter, const char *description, int width, int height, int format, AVRational time_base, AVRational aspect);

// Hands over a picture, which is empty afterwards; NULL at the end. 0 or an AVERROR.
int fh_av_filter_send(fh_av_filter *filter, AVFrame *picture);

// 0 with a picture, AVERROR(EAGAIN) when it needs another one first, AVERROR_EOF, or another AVERROR.
int fh_av_filter_receive(fh_av_filter *filter, AVFrame *picture);

void fh_av_filter_close(fh_av_filter **filter);

#endif
