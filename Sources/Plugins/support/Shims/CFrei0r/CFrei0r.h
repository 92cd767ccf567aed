// SPDX-License-Identifier: Apache-2.0

// The frei0r interface for Swift (Debian: frei0r-plugins-dev). Its functions are looked up in each effect's library, never linked;
// nothing is added.
#ifndef CFREI0R_H
#define CFREI0R_H

#include <frei0r.h>

#endif
