// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a recorder knows of an access unit beside its bytes.
struct RecordedUnit {
    var pts: MediaTime
    var dts: MediaTime
    var duration: MediaTime
    /// Chain clock; 0 when unknown.
    var capturedAt: Int64
    var sequenceNumber: UInt64
    var orientation: Orientation
    var isKeyframe: Bool
    /// For captions; empty where those were not asked for.
    var faces = FaceIDs()
}

extension RecordedUnit {
    init(_ unit: borrowing AccessUnit) {
        pts = unit.pts
        dts = unit.dts
        duration = unit.duration
        capturedAt = unit.capturedAt
        sequenceNumber = unit.sequenceNumber
        orientation = unit.orientation
        isKeyframe = unit.isKeyframe
    }
}
