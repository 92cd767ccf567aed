// SwiftPM wants at least one source in a C target.
#include "CPNG.h"
