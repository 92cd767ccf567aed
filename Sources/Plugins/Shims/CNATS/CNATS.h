// SPDX-License-Identifier: Apache-2.0

// The NATS client in C for Swift (Debian: libnats-dev). Nothing is added.
#ifndef CNATS_H
#define CNATS_H

#include <nats/nats.h>

#endif
