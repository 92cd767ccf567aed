// SPDX-License-Identifier: Apache-2.0

// ALSA for Swift (Debian: libasound2-dev): what the importer cannot do.
#ifndef CALSA_H
#define CALSA_H

#include <alsa/asoundlib.h>

// The handler is variadic. Without one the library writes to standard error; our faults have messages of their own.
static inline void fh_alsa_ignore(const char *file, int line, const char *function, int code, const char *format, ...) {}
static inline void fh_alsa_be_quiet(void) { snd_lib_error_set_handler(fh_alsa_ignore); }

#endif
