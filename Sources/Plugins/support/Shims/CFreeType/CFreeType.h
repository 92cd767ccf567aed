// SPDX-License-Identifier: Apache-2.0

// FreeType for Swift (Debian: libfreetype-dev). Headers are named by macros, which the importer follows; nothing is added.
#ifndef CFREETYPE_H
#define CFREETYPE_H

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_GLYPH_H
#include FT_STROKER_H

#endif
