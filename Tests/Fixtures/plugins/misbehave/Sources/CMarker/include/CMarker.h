// SPDX-License-Identifier: Apache-2.0

/// Present so that the plugin refers to this library and its constructor is linked in.
void marker_keep(void);
