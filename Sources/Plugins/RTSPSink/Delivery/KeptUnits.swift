// SPDX-License-Identifier: Apache-2.0

/// The newest keyframe and what followed it, for a reader that joins shortly after: bounded in time, units and bytes.
struct KeptUnits<Unit: QueuedUnit> {
    struct Limits: Sendable {
        /// Nanoseconds after the keyframe.
        var window: Int64 = 250_000_000
        /// As `window`, while joiners come so fast that their keyframes would crowd out the picture: each joiner starts
        /// a little longer ago instead.
        var crowdedWindow: Int64 = 500_000_000
        var mostUnits = 64
        var mostBytes = 16 << 20
    }

    let limits: Limits
    private var units: [Unit] = []
    private var byteCount = 0
    private var keyframeTime: Int64 = 0
    /// Of the newest keyframe, nanoseconds.
    private var window: Int64

    init(limits: Limits = Limits()) {
        self.limits = limits
        window = limits.window
        units.reserveCapacity(limits.mostUnits)
    }

    /// A unit has come.
    ///
    /// - Parameter isCrowded: For a keyframe, that readers had asked for it soon after they had asked for another
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
        // A group that is not whole is of no use.
        if now - keyframeTime > window || units.count > limits.mostUnits || byteCount > limits.mostBytes { clear() }
    }

    /// All units from the keyframe on; none when it is too long ago.
    func current(now: Int64) -> [Unit] { now - keyframeTime > window ? [] : units }

    /// Lets go of all.
    mutating func clear() {
        units.removeAll(keepingCapacity: true)
        byteCount = 0
    }
}
