// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// An origin that gives motion at its own pace. Used by one thread at a time.
protocol LiveMotion: AnyObject {
    /// [control thread] What it will give. May look at a device, and changes nothing there.
    func negotiate() throws -> MotionFormat

    /// [setup thread] Opens it.
    func start() throws

    /// [stage thread] Appends what has come, with times of the chain clock, in the sensor's axes. Waits for at most
    /// ``LiveWait/milliseconds``.
    ///
    /// - Returns: Whether there is a gap before these samples, or their times begin anew.
    func take(into samples: inout [MotionSample]) throws -> Bool

    /// [stage thread] Closes it. A second call does no harm.
    func stop()
}

enum LiveWait {
    /// How long one wait lasts, so that a stop is noticed.
    static let milliseconds: Int32 = 100
    /// Without a sample for this long an origin counts as lost, nanoseconds.
    static let patience: Int64 = 1_000_000_000
}
