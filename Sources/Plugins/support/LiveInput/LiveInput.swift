// SPDX-License-Identifier: Apache-2.0

/// Sources of pictures have both: `LiveState` says when a device is lost, away and back, `StandIn` what is shown meanwhile.
@_exported import LiveStates
