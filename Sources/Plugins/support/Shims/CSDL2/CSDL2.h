// SPDX-License-Identifier: Apache-2.0

// SDL 2 for Swift (Debian: libsdl2-dev). Nothing is added; `main` stays the program's own.
#ifndef CSDL2_H
#define CSDL2_H

#define SDL_MAIN_HANDLED
#include <SDL.h>
#include <SDL_syswm.h>

#endif
