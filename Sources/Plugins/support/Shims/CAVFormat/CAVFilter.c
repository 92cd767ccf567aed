// SPDX-License-Identifier: Apache-2.0

#include "CAVFilter.h"

#include <dlfcn.h>
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/error.h>
#include <libavutil/mem.h>
#include <stdio.h>

#define TEXT_OF(x) #x
#define LIBRARY_OF(major) "libavfilter.so." TEXT_OF(major)
static const char library_name[] = LIBRARY_OF(LIBAVFILTER_VERSION_MAJOR);

// Every function of libavfilter that is used, and the pointer it is called through.
#define FUNCTIONS(f)                                                                                                       \
    f(avfilter_get_by_name) f(avfilter_graph_alloc) f(avfilter_graph_create_filter) f(avfilter_graph_parse_ptr)            \
    f(avfilter_graph_config) f(avfilter_graph_free) f(avfilter_inout_alloc) f(avfilter_inout_free)                         \
    f(av_buffersrc_add_frame_flags) f(av_buffersink_get_frame)
#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)

static void *library;

struct fh_av_filter {
    AVFilterGraph *graph;
    AVFilterContext *source, *sink;
};

const char *fh_av_filter_library(void) { return library_name; }

int fh_av_filter_load(char *text, size_t capacity) {
    if (library) return 0;
    void *loaded = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
        const char *reason = dlerror();
        snprintf(text, capacity, "%s", reason ? reason : "");
        return -1;
    }
#define FIND(name)                                                                                                         \
    if (!(p_##name = (__typeof__(name) *)dlsym(loaded, #name))) {                                                          \
        snprintf(text, capacity, "%s has no function %s", library_name, #name);                                            \
        dlclose(loaded);                                                                                                   \
        return -1;                                                                                                         \
    }
    FUNCTIONS(FIND)
    library = loaded;
    return 0;
}

// Makes both ends, and what `description` says between them.
static int build(
    fh_av_filter *filter, const char *description, int width, int height, int format, AVRational time_base, AVRational aspect) {
    char arguments[256];
    snprintf(
        arguments, sizeof arguments, "video_size=%dx%d:pix_fmt=%d:time_base=%d/%d:pixel_aspect=%d/%d", width, height, format, time_base.num,
        time_base.den, aspect.num, aspect.den > 0 ? aspect.den : 1);
    int result = p_avfilter_graph_create_filter(
        &filter->source, p_avfilter_get_by_name("buffer"), "in", arguments, NULL, filter->graph);
    if (result < 0) return result;
    result = p_avfilter_graph_create_filter(&filter->sink, p_avfilter_get_by_name("buffersink"), "out", NULL, NULL, filter->graph);
    if (result < 0) return result;
    AVFilterInOut *outputs = p_avfilter_inout_alloc(), *inputs = p_avfilter_inout_alloc();
    if (outputs && inputs) {
        // "in" is what the description reads from, "out" what it writes to.
        *outputs = (AVFilterInOut){.name = av_strdup("in"), .filter_ctx = filter->source};
        *inputs = (AVFilterInOut){.name = av_strdup("out"), .filter_ctx = filter->sink};
        result = p_avfilter_graph_parse_ptr(filter->graph, description, &inputs, &outputs, NULL);
    } else {
        result = AVERROR(ENOMEM);
    }
    p_avfilter_inout_free(&inputs);
    p_avfilter_inout_free(&outputs);
    return result < 0 ? result : p_avfilter_graph_config(filter->graph, NULL);
}

int fh_av_filter_open(
    fh_av_filter **filter, const char *description, int width, int height, int format, AVRational time_base, AVRational aspect) {
    *filter = av_mallocz(sizeof **filter);
    if (!*filter) return AVERROR(ENOMEM);
    (*filter)->graph = p_avfilter_graph_alloc();
    int result = (*filter)->graph ? build(*filter, description, width, height, format, time_base, aspect) : AVERROR(ENOMEM);
    if (result < 0) fh_av_filter_close(filter);
    return result;
}

int fh_av_filter_send(fh_av_filter *filter, AVFrame *picture) { return p_av_buffersrc_add_frame_flags(filter->source, picture, 0); }

int fh_av_filter_receive(fh_av_filter *filter, AVFrame *picture) { return p_av_buffersink_get_frame(filter->sink, picture); }

void fh_av_filter_close(fh_av_filter **filter) {
    if (!*filter) return;
    p_avfilter_graph_free(&(*filter)->graph);
    av_freep(filter);
}
