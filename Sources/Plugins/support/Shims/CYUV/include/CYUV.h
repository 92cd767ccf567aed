// SPDX-License-Identifier: Apache-2.0

// libyuv for Swift (Debian: libyuv-dev; no pkg-config file). The importer can do all that we call; what libyuv lacks is beside it.
#ifndef CYUV_H
#define CYUV_H

#include <libyuv.h>

#include "Resample.h"

#endif
