// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Rates

/// The chain's rates, computed once for all who watch it.
///
/// Looks at the chain once a second, so that the first who asks gets rates too, and when somebody asks. Requests within
/// ``shortest`` share a look.
final class RateWatch: Sendable {
    /// Looks for rates over one interval.
    private struct Looks {
        var interval: Double
        var rates: LiveRates
        var last: (time: Int64, state: ChainStatus.State, json: JSONNode)?

        init(_ interval: Double) {
            self.interval = interval
            rates = LiveRates(interval: interval)
        }
    }
    /// Shorter than the page waits after a control, so that it sees what the control has done; nanoseconds.
    private static let shortest: Int64 = 50_000_000
    /// Of so many intervals at once; whoever asks for a further one takes the place of the one not asked for longest.
    private static let mostIntervals = 8
    /// The usual interval first, others by when they were asked for last.
    private let looks = Locked([Looks(LiveRates.usualInterval)])
    private let control: any RunControl

    init(_ control: any RunControl) { self.control = control }

    /// [service thread] Looks if the last look was a second ago.
    func tick() { _ = rates(over: LiveRates.usualInterval, atLeast: 1_000_000_000) }

    /// [any thread] As `/api/v1/metrics` has them.
    ///
    /// - Parameter interval: Seconds over which rates are wanted, if more than usual. Who wants that asks twice.
    func json(over interval: Double?) -> JSONNode {
        rates(over: max(interval ?? 0, LiveRates.usualInterval), atLeast: Self.shortest)
    }

    private func rates(over interval: Double, atLeast age: Int64) -> JSONNode {
        looks.withLock { looks in
            let place = looks.firstIndex { $0.interval == interval }
            var found = place.map { looks[$0] } ?? Looks(interval)
            let now = MonotonicTime.now()
            // Before the run begins a chain is stopped, as after it: nobody must hear that of one that runs by now.
            let state = control.status.state
            if let last = found.last, now - last.time < age, last.state == state { return last.json }
            let look = ChainLook(
                status: control.namedStatus, metrics: control.metricsWithProcess, figures: control.figures)
            let json = found.rates.take(look) { control.plan }.json
            found.last = (now, state, json)
            if let place { looks.remove(at: place) }
            looks.insert(found, at: interval == LiveRates.usualInterval ? 0 : looks.count)
            if looks.count > Self.mostIntervals { looks.remove(at: 1) }
            return json
        }
    }
}

extension RunControl {
    /// As `/api/v1/status` has it.
    var namedStatus: JSONNode {
        .object([("name", .string(chainName))] + (status.json.asObject ?? []).map { ($0.key, $0.value) })
    }

    /// As `/api/v1/metrics` has them, without the rates.
    var metricsWithProcess: JSONNode {
        .object((metrics.asObject ?? []).map { ($0.key, $0.value) } + [("process", ProcessFigures.now().json)])
    }
}
