// SPDX-License-Identifier: Apache-2.0

/// What travels on a link. ``StageInfo/input`` decides which of these a stage gets.
///
/// A sample moves; take it apart with `consume`:
///
/// ```swift
/// guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
/// ```
public enum Sample: ~Copyable, Sendable {
    /// A raw picture.
    case frame(Frame)
    /// An encoded picture, or a packet of encoded sound.
    case accessUnit(AccessUnit)
    /// Sound that is not encoded.
    case audioBlock(AudioBlock)
    /// Samples of motion.
    case motionBlock(MotionBlock)

    init(_ lease: consuming Lease) {
        self =
            switch lease.record.pointee.header.kind {
            case .frame: .frame(Frame(lease))
            case .accessUnit: .accessUnit(AccessUnit(lease))
            case .audioBlock: .audioBlock(AudioBlock(lease))
            case .motionBlock: .motionBlock(MotionBlock(lease))
            }
    }
}
