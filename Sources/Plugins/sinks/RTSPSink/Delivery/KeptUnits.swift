// SPDX-License-Identifier: Apache-2.0

/// The newest keyframe and what followed it, for a reader that joins shortly after: bounded in time, units and bytes.
struct KeptUnits<Unit: QueuedUnit> {
    struct Limits: Sendable {
        /// Nanoseconds after the keyframe.
        var window: Int64 = 250_000_000
        /// As `window`, while readers join so fast that keyframes for them would take most of the bitrate. Each reader
        /// then starts with an older keyframe instead.
        var crowdedWindow: Int64 = 500_000_000
        var mostUnits = 64
        /// The same for units that stand alone.
        var mostAlone = 256
        var mostBytes = 16 << 20
    }

    let limits: Limits
    private var units: [Unit] = []
    private var byteCount = 0
    private var aloneCount = 0
    private var keyframeTime: Int64 = 0
    /// The window of the newest keyframe, nanoseconds.
    private var window: Int64

    init(limits: Limits = Limits()) {
        self.limits = limits
        window = limits.window
        units.reserveCapacity(limits.mostUnits)
    }

    /// Adds a unit.
    ///
    /// - Parameter isCrowded: For a keyframe, whether readers asked for it soon after they had asked for another
    ///   (``KeyframeRequests``).
    mutating func add(_ unit: Unit, now: Int64, isCrowded: Bool = false) {
        if unit.isKeyframe {
            clear()
            keyframeTime = now
            window = isCrowded ? limits.crowdedWindow : limits.window
        } else if units.isEmpty {
            return
        }
        units.append(unit)
        byteCount += unit.byteCount
        if unit.standsAlone { aloneCount += 1 }
        // A group that is kept only in part cannot be decoded.
        if now - keyframeTime > window || units.count - aloneCount > limits.mostUnits || aloneCount > limits.mostAlone
            || byteCount > limits.mostBytes
        {
            clear()
        }
    }

    /// All units from the keyframe on; none when it is too long ago.
    func current(now: Int64) -> [Unit] { now - keyframeTime > window ? [] : units }

    /// Releases all units.
    mutating func clear() {
        units.removeAll(keepingCapacity: true)
        byteCount = 0
        aloneCount = 0
    }
}
