// SPDX-License-Identifier: Apache-2.0

// SwiftPM wants at least one source in a C target.
#include "CYUV.h"
