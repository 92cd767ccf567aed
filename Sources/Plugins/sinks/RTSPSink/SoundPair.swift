// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A unit of AAC that waits for the next one, to share a packet with it. That halves the number of packets, each of
/// which costs the network more than its bytes. [stage thread]
struct SoundPair {
    /// How far a unit may start from the end of the one before, nanoseconds: containers round times by that much.
    private static let tolerance: Int64 = 1_000_000

    private var bytes: [UInt8] = []
    /// The size of the first of two units; nil where there is only one.
    private(set) var firstBytes: Int?
    /// Of the first unit, nanoseconds.
    private(set) var pts: Int64 = 0
    private var duration: Int64 = 0

    var isEmpty: Bool { bytes.isEmpty }
    var byteCount: Int { bytes.count }

    /// Whether a unit begins where the one that waits ends. Clients rely on it for the second unit of a packet.
    func isFollowed(by unit: borrowing AccessUnit) -> Bool {
        // Both times lie within ±2^61 ns.
        guard !isEmpty, duration > 0, !unit.isDiscontinuity else { return false }
        return abs(unit.pts.nanoseconds - pts - duration) <= Self.tolerance
    }

    /// Copies a unit, of some hundred bytes; allocates nothing once warm.
    mutating func append(_ unit: borrowing AccessUnit) {
        if isEmpty {
            (pts, duration) = (unit.pts.nanoseconds, min(unit.duration.nanoseconds, 1_000_000_000))
        } else {
            firstBytes = bytes.count
        }
        unit.withBytes { bytes.append(contentsOf: $0) }
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        firstBytes = nil
    }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { bytes.withUnsafeBytes(body) }
}
