// SPDX-License-Identifier: Apache-2.0

// libswresample for Swift (Debian: libswresample-dev).
#ifndef CSWRESAMPLE_H
#define CSWRESAMPLE_H

#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>

#endif
