// SPDX-License-Identifier: Apache-2.0

// libmosquitto for Swift (Debian: libmosquitto-dev). Nothing is added.
#ifndef CMOSQUITTO_H
#define CMOSQUITTO_H

#include <mosquitto.h>

#endif
