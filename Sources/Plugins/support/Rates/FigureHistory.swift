// SPDX-License-Identifier: Apache-2.0

/// Past looks at the counters of one thing. Rates are differences between looks.
///
/// Another stage of the same name is told by what it is; a counter that falls belongs to another run, or to a stage of a
/// server that tells no numbers. All earlier looks are then forgotten, so that no rate mixes the two.
struct FigureHistory {
    /// For how long looks are kept, seconds.
    static let seconds = 10.0
    /// Of looks that follow each other more closely, only the newest is kept, seconds.
    static let spacing = 0.2

    private struct Look {
        var time: Double
        var counters: [String: Double]
        /// A present value, for means over time.
        var gauge: Double
    }
    private var looks: [Look] = []
    /// What the thing was in the last look, since another thing may get the same name.
    private var what = ""

    /// - Parameter time: Seconds of a monotonic clock. A look at an earlier or equal time replaces all looks before it.
    mutating func add(_ counters: [String: Double], of what: String, gauge: Double = 0, time: Double) {
        if let last = looks.last,
            self.what != what || time <= last.time
                || last.counters.contains(where: { (counters[$0.key] ?? 0) < $0.value })
        {
            looks = []
        }
        self.what = what
        if looks.count > 2, let last = looks.last, last.time - looks[looks.count - 2].time < Self.spacing {
            looks.removeLast()
        }
        looks.append(Look(time: time, counters: counters, gauge: gauge))
        while looks.count > 2, time - looks[1].time >= Self.seconds { looks.removeFirst() }
    }

    /// How much a counter has risen within about the last `seconds`, or since the look before where that is longer ago.
    ///
    /// - Returns: nil before there are two looks.
    func rise(_ key: String, within seconds: Double) -> (by: Double, in: Double)? {
        guard looks.count > 1, let last = looks.last else { return nil }
        let early = looks.first { last.time - $0.time <= seconds + 0.5 } ?? last
        let first = early.time == last.time ? looks[looks.count - 2] : early
        return ((last.counters[key] ?? 0) - (first.counters[key] ?? 0), last.time - first.time)
    }

    /// The rise in a second; nil before there are two looks.
    func rate(_ key: String, within seconds: Double) -> Double? {
        rise(key, within: seconds).map { $0.by / $0.in }
    }

    /// The counters of the last look whose names begin with `prefix`, without it.
    func last(_ prefix: String) -> [(key: String, value: Double)] {
        (looks.last?.counters ?? [:]).filter { $0.key.hasPrefix(prefix) }.map {
            (String($0.key.dropFirst(prefix.count)), $0.value)
        }
    }

    /// Keys that begin with `prefix` and have risen within the last `seconds`, sorted, without the prefix.
    func risen(_ prefix: String, within seconds: Double) -> [String] {
        last(prefix).map(\.key).filter { (rise(prefix + $0, within: seconds)?.by ?? 0) > 0 }.sorted()
    }

    /// The mean of the gauge in the looks that are kept.
    var meanGauge: Double {
        looks.isEmpty ? 0 : looks.reduce(0) { $0 + $1.gauge } / Double(looks.count)
    }

    /// For a histogram, the two bounds between which the 99th percentile of the last `seconds` lies.
    ///
    /// - Returns: nil without a value; `most` is infinite beyond the last bound.
    func p99(_ name: String, within seconds: Double) -> (above: Double, most: Double)? {
        guard let total = rise("\(name).count", within: seconds)?.by, total > 0 else { return nil }
        let prefix = "\(name).le."
        let bounds = (looks.last?.counters.keys ?? [:].keys).compactMap { key -> Double? in
            key.hasPrefix(prefix) ? Double(key.dropFirst(prefix.count)) : nil
        }.sorted()
        var above = 0.0
        for bound in bounds {
            if (rise("\(prefix)\(bound)", within: seconds)?.by ?? 0) >= 0.99 * total { return (above, bound) }
            above = bound
        }
        return (above, .infinity)
    }
}
