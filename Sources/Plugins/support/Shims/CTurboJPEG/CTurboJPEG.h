// SPDX-License-Identifier: Apache-2.0

// libjpeg-turbo's own interface for Swift (Debian: libturbojpeg0-dev). Nothing is added.
#ifndef CTURBOJPEG_H
#define CTURBOJPEG_H

#include <turbojpeg.h>

#endif
