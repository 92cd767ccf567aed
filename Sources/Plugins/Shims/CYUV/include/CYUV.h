// libyuv for Swift (Debian: libyuv-dev; no pkg-config file). The importer can do all that we call: nothing is added.
#ifndef CYUV_H
#define CYUV_H

#include <libyuv.h>

#endif
