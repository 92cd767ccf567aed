// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CFetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <unistd.h>

struct target {
    int file;
    int64_t offset, most;
    int32_t *result;
    void (*progress)(void *, int64_t);
    void *context;
};

static size_t take(char *bytes, size_t size, size_t count, void *user) {
    struct target *target = user;
    size_t length = size * count, written = 0;
    if ((uint64_t)length > (uint64_t)(target->most - target->offset)) {
        target->result[FH_FETCH_TOO_LONG] = 1;
        return CURL_WRITEFUNC_ERROR;
    }
    while (written < length) {
        ssize_t n = pwrite(target->file, bytes + written, length - written, target->offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            target->result[FH_FETCH_WRITE_ERROR] = n < 0 ? errno : ENOSPC;
            return CURL_WRITEFUNC_ERROR;
        }
        written += (size_t)n;
        target->offset += n;
    }
    if (target->progress) target->progress(target->context, target->offset);
    return length;
}

void fh_fetch(
    const char *url, const char *authorities, int64_t from, int64_t most, int file, void (*progress)(void *, int64_t), void *context,
    int32_t result[FH_FETCH_RESULTS], char *message, size_t capacity) {
    struct target target = {file, from, most, result, progress, context};
    for (int index = 0; index < FH_FETCH_RESULTS; ++index) result[index] = 0;
    char words[CURL_ERROR_SIZE] = "";
    if (capacity > 0) message[0] = 0;
    CURL *curl = curl_easy_init();
    if (!curl) {
        result[FH_FETCH_CODE] = CURLE_FAILED_INIT;
        return;
    }
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "framehost");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
    // A peer that sends nothing for half a minute has gone.
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);
    if (authorities) curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    if (from > 0) curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)from);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &target);
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    result[FH_FETCH_CODE] = (int32_t)code;
    result[FH_FETCH_STATUS] = (int32_t)status;
    if (code != CURLE_OK) snprintf(message, capacity, "%s", words[0] ? words : curl_easy_strerror(code));
}

struct asked {
    CURL *curl;
    int (*take)(void *, int32_t, const uint8_t *, size_t);
    void *context;
};

static size_t give(char *bytes, size_t size, size_t count, void *user) {
    struct asked *asked = user;
    long status = 0;
    curl_easy_getinfo(asked->curl, CURLINFO_RESPONSE_CODE, &status);
    return asked->take(asked->context, (int32_t)status, (const uint8_t *)bytes, size * count) == 0 ? size * count : CURL_WRITEFUNC_ERROR;
}

void fh_fetch_request(
    const char *method, const char *url, const char *authorities, const char *const *fields, size_t field_count, const void *body, size_t body_length, int64_t seconds,
    int (*take)(void *context, int32_t status, const uint8_t *bytes, size_t count), void *context, int32_t result[FH_FETCH_RESULTS],
    char *message, size_t capacity) {
    for (int index = 0; index < FH_FETCH_RESULTS; ++index) result[index] = 0;
    char words[CURL_ERROR_SIZE] = "";
    if (capacity > 0) message[0] = 0;
    CURL *curl = curl_easy_init();
    struct curl_slist *lines = NULL;
    int is_complete = curl != NULL;
    for (size_t index = 0; is_complete && index < field_count; ++index) {
        struct curl_slist *longer = curl_slist_append(lines, fields[index]);
        if (longer) lines = longer;
        is_complete = longer != NULL;
    }
    if (!is_complete) {
        result[FH_FETCH_CODE] = CURLE_FAILED_INIT;
        curl_slist_free_all(lines);
        curl_easy_cleanup(curl);
        return;
    }
    struct asked asked = {curl, take, context};
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (authorities) curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    // A token is for the server that is named, not for a proxy of the environment.
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_length);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    }
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "framehost");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
    if (seconds > 0) curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)seconds);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, give);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &asked);
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(lines);
    curl_easy_cleanup(curl);
    result[FH_FETCH_CODE] = (int32_t)code;
    result[FH_FETCH_STATUS] = (int32_t)status;
    if (code != CURLE_OK) snprintf(message, capacity, "%s", words[0] ? words : curl_easy_strerror(code));
}

int fh_fetch_sha256(int file, uint8_t digest[32]) {
    struct sha256_ctx state;
    uint8_t bytes[1 << 14];
    off_t offset = 0;
    sha256_init(&state);
    for (;;) {
        ssize_t n = pread(file, bytes, sizeof bytes, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        sha256_update(&state, (size_t)n, bytes);
        offset += n;
    }
    sha256_digest(&state, SHA256_DIGEST_SIZE, digest);
    return 0;
}

void fh_fetch_sha256_of(const void *bytes, size_t count, uint8_t digest[32]) {
    struct sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, count, bytes);
    sha256_digest(&state, SHA256_DIGEST_SIZE, digest);
}

int fh_fetch_rename_new(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ? 0 : errno;
}
