// SPDX-License-Identifier: Apache-2.0

// libcurl and Nettle for the host (Debian: libcurl4-openssl-dev, nettle-dev), as a library of its own: the host loads it when a file is
// fetched or checked, and at no other time, so that starting a chain costs nothing. Called through dlsym; the host never links it.
//
// Nothing is decided here: no defaults, no retries, no messages. curl_easy_setopt is variadic, which Swift cannot
// call.
#ifndef CFETCH_H
#define CFETCH_H

#include <stddef.h>
#include <stdint.h>

// The outcome of a transfer: places in `result`.
enum {
    // CURLcode: 0 for a complete transfer.
    FH_FETCH_CODE,
    // HTTP status of the last answer; 0 without one.
    FH_FETCH_STATUS,
    // errno of the write to the file that failed; 0 when none did.
    FH_FETCH_WRITE_ERROR,
    // Not 0 where the answer has more than `most` bytes.
    FH_FETCH_TOO_LONG,
    FH_FETCH_RESULTS
};

// One GET over HTTPS, which follows redirects to HTTPS and writes to `file` from the offset `from` on. An offset
// other than 0 is requested by Range; a server that still answers with the whole file gives CURLE_RANGE_ERROR, 33.
// Writes no more than `most` bytes in all, `from` included. `authorities` is a file of certificates, NULL for the
// system's. `message`: curl's words. `progress` is told how many bytes are in the file.
void fh_fetch(
    const char *url, const char *authorities, int64_t from, int64_t most, int file, void (*progress)(void *context, int64_t bytes),
    void *context, int32_t result[FH_FETCH_RESULTS], char *message, size_t capacity);

// One request over HTTP or HTTPS, no redirects. `fields` are whole header lines; `body` may be NULL. `take` gets the status with each piece of
// the answer as it comes, and ends the transfer by not returning 0. `authorities` as above. `seconds` bounds the whole of it; 0 for no bound. `message`: curl's words.
void fh_fetch_request(
    const char *method, const char *url, const char *authorities, const char *const *fields, size_t field_count, const void *body, size_t body_length, int64_t seconds,
    int (*take)(void *context, int32_t status, const uint8_t *bytes, size_t count), void *context, int32_t result[FH_FETCH_RESULTS],
    char *message, size_t capacity);

// SHA-256 of a file from its beginning on; -1 with errno when it cannot be read.
int fh_fetch_sha256(int file, uint8_t digest[32]);

// SHA-256 of bytes.
void fh_fetch_sha256_of(const void *bytes, size_t count, uint8_t digest[32]);

// renameat2 with RENAME_NOREPLACE, which Swift does not import: 0, or an errno.
int fh_fetch_rename_new(const char *from, const char *to);

#endif
