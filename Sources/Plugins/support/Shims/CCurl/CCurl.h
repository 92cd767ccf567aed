// SPDX-License-Identifier: Apache-2.0

// libcurl for Swift (Debian: libcurl4-openssl-dev). Nothing is decided here: no defaults, no retries, no messages.
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call.
typedef size_t (*fh_curl_taker)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode fh_curl_set_long(CURL *curl, CURLoption option, long value) { return curl_easy_setopt(curl, option, value); }
static inline CURLcode fh_curl_set_text(CURL *curl, CURLoption option, const char *value) { return curl_easy_setopt(curl, option, value); }
static inline CURLcode fh_curl_set_pointer(CURL *curl, CURLoption option, void *value) { return curl_easy_setopt(curl, option, value); }
static inline CURLcode fh_curl_set_list(CURL *curl, CURLoption option, struct curl_slist *value) { return curl_easy_setopt(curl, option, value); }
static inline CURLcode fh_curl_set_taker(CURL *curl, CURLoption option, fh_curl_taker value) { return curl_easy_setopt(curl, option, value); }
static inline CURLMcode fh_curl_set_connections(CURLM *multi, long value) { return curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, value); }
static inline CURLcode fh_curl_get_long(CURL *curl, CURLINFO info, long *value) { return curl_easy_getinfo(curl, info, value); }
static inline CURLcode fh_curl_get_offset(CURL *curl, CURLINFO info, curl_off_t *value) { return curl_easy_getinfo(curl, info, value); }

// Macros with a cast, which Swift does not import.
static const long fh_curl_auth_basic = CURLAUTH_BASIC;
static const long fh_curl_global = CURL_GLOBAL_DEFAULT;

#endif
