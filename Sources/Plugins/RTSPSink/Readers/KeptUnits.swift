/// The newest keyframe and what followed it, for a reader that joins shortly after: bounded in time, units and bytes.
struct KeptUnits<Unit: QueuedUnit> {
    struct Limits: Sendable {
        /// Nanoseconds after the keyframe.
        var window: Int64 = 250_000_000
        var mostUnits = 64
        var mostBytes = 16 << 20
    }

    let limits: Limits
    private var units: [Unit] = []
    private var byteCount = 0
    private var keyframeTime: Int64 = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
        units.reserveCapacity(limits.mostUnits)
    }

    /// A unit has come.
    mutating func add(_ unit: Unit, now: Int64) {
        if unit.isKeyframe {
            clear()
            keyframeTime = now
        } else if units.isEmpty {
            return
        }
        units.append(unit)
        byteCount += unit.byteCount
        // A group that is not whole is of no use.
        if now - keyframeTime > limits.window || units.count > limits.mostUnits || byteCount > limits.mostBytes { clear() }
    }

    /// All units from the keyframe on; none when it is too long ago.
    func current(now: Int64) -> [Unit] { now - keyframeTime > limits.window ? [] : units }

    /// Lets go of all.
    mutating func clear() {
        units.removeAll(keepingCapacity: true)
        byteCount = 0
    }
}
