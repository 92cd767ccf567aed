// SPDX-License-Identifier: Apache-2.0

// Nettle for Swift (Debian: nettle-dev): hashes and Base64. Nothing is added.
#ifndef CNETTLE_H
#define CNETTLE_H

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#endif
