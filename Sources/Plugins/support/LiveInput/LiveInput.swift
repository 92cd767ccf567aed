// SPDX-License-Identifier: Apache-2.0

/// Sources of pictures have both.
@_exported import LiveStates
