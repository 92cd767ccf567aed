// SPDX-License-Identifier: Apache-2.0

// OpenSSL for Swift (Debian: libssl-dev). Nothing is added.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#endif
