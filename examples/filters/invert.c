// SPDX-License-Identifier: Apache-2.0
// A filter in C that inverts the picture. It needs stage_filter.h, stage_link.h and libc:
//   cc -O2 -I $(framehost --core-path)/StageLink/include -o invert invert.c
// In a chain: { "use": "program:filters/invert" }. docs/stage-protocol.md.
#include "stage_filter.h"

static const char description[] =
    "{\"summary\": \"Inverts the picture.\", \"formats\": [\"i420\", \"nv12\", \"gray8\"], \"modifies\": true}";

static void invert(struct fh_filter *filter, const struct fh_call *call) {
    for (uint32_t plane = 0; plane < filter->control->planes; plane++) {
        const struct fh_plane *it = &filter->control->plane[plane];
        for (uint32_t row = 0; row < it->rows; row++) {
            uint8_t *bytes = fh_row(filter, call, plane, row);
            for (uint32_t index = 0; index < it->row_bytes; index++) bytes[index] = 255 - bytes[index];
        }
    }
}

int main(void) {
    static struct fh_filter filter;
    if (fh_make(&filter, description) != 0 || fh_start(&filter) != 0) return 1;
    struct fh_call *call;
    while ((call = fh_next(&filter)) != NULL) {
        invert(&filter, call);
        fh_answer(&filter, FH_FORWARD);
    }
    return 0;
}
