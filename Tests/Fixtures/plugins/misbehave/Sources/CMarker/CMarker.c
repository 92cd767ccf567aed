// SPDX-License-Identifier: Apache-2.0

#include "CMarker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void marker_keep(void) {}

/* Runs inside dlopen: leaves a file that shows that this library was loaded. */
__attribute__((constructor)) static void leave_marker(void) {
    const char *path = getenv("MISBEHAVE_MARKER");
    if (!path) return;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0) close(file);
}
