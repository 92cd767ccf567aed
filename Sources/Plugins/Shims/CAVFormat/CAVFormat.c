#include "CAVFormat.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_line[512];

// May be called from any of libav's threads.
static void fh_av_log_keep(void *context, int level, const char *format, va_list arguments) {
    (void)context;
    if (level > AV_LOG_WARNING) return;
    char text[sizeof last_line];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    if (!text[0]) return;
    pthread_mutex_lock(&lock);
    memcpy(last_line, text, sizeof text);
    pthread_mutex_unlock(&lock);
}

void fh_av_log_begin(void) {
    pthread_mutex_lock(&lock);
    last_line[0] = 0;
    pthread_mutex_unlock(&lock);
    av_log_set_callback(fh_av_log_keep);
}

void fh_av_log_end(char *text, size_t capacity) {
    av_log_set_level(AV_LOG_QUIET);
    av_log_set_callback(av_log_default_callback);
    pthread_mutex_lock(&lock);
    snprintf(text, capacity, "%s", last_line);
    pthread_mutex_unlock(&lock);
}
