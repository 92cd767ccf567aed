// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides when a recording goes on in a new file. Pure.
///
/// A cut is only possible before a keyframe, so that the new file can be decoded without the one before.
struct SegmentPolicy {
    /// The length at which a file is full; nil for no limit.
    private let length: MediaTime?
    /// The most bytes of access units in a file; nil for no limit.
    private let byteLimit: Int64?
    private var begin = MediaTime.zero
    /// The newest keyframe.
    private var latest = MediaTime.zero
    private var bytes: Int64 = 0
    private var groupBytes: Int64 = 0
    private var largestGroup: Int64 = 0

    init(seconds: Double?, megabytes: Double?) {
        length = seconds.map(MediaTime.init(seconds:))
        byteLimit = megabytes.map { Int64($0 * 1_000_000) }
    }

    /// Whether a recording has several files.
    var isOn: Bool { length != nil || byteLimit != nil }

    /// A file begins with the keyframe at `pts`; `add` follows for its bytes.
    mutating func beginFile(at pts: MediaTime) {
        begin = pts
        latest = pts
        bytes = 0
        groupBytes = 0
        largestGroup = 0
    }

    /// Notes that bytes went into the file.
    mutating func add(bytes count: Int) {
        bytes += Int64(count)
        groupBytes += Int64(count)
    }

    /// Whether the file ends before the keyframe at `pts`. Must be called at every keyframe except the file's first.
    ///
    /// By time: the file is `length` long, or shorter by no more than a camera's jitter (a twentieth, at most 50 ms
    /// or half the time from the keyframe before), so that a minute with a keyframe every two seconds is a minute, and one
    /// of MJPEG, where each picture is one, no picture shorter. By size: another group of pictures, as large as
    /// the file's largest, would exceed the limit.
    mutating func cuts(beforeKeyframeAt pts: MediaTime) -> Bool {
        largestGroup = max(largestGroup, groupBytes)
        groupBytes = 0
        if let length {
            let tolerance = min(length.nanoseconds / 20, 50_000_000, max((pts - latest).nanoseconds, 0) / 2)
            latest = pts
            if (pts - begin).nanoseconds >= length.nanoseconds - tolerance { return true }
        }
        if let byteLimit, bytes + largestGroup > byteLimit { return true }
        return false
    }
}
