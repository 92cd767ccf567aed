// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// Looks at a running chain through its control server, and finds out whether it ended as it should.
///
/// `@unchecked Sendable`: only the thread that calls ``look()`` uses its members, except what the listener has
/// heard, which is behind a lock.
final class ChainWatch: @unchecked Sendable {
    /// Why there is nothing more to look at.
    enum End: Error {
        /// The chain has ended as it should.
        case ended
        /// The chain has failed, or its server has gone.
        case fault(any Error)
    }

    private let client: ControlClient
    private var figures: LiveFigures
    private(set) var plan: PlanLook?
    private var looks = 0
    private var state = ""
    private let listener = Listener()
    /// The plan is read again after this many looks, since a stage may give another format when nothing else has
    /// changed.
    private static let looksPerPlan = 10

    /// What the server's events have told. The stream ends with the chain.
    private final class Listener: @unchecked Sendable {
        struct Heard {
            var state = ""
            var hasEnded = false
        }
        let heard = Mutex(Heard())
    }

    /// - Parameter interval: Seconds between looks.
    init(_ client: ControlClient, interval: Double) {
        self.client = client
        figures = LiveFigures(interval: interval)
    }

    /// The chain as it is now; the first look has no rates.
    ///
    /// - Throws: of the first look ``FrameHostErrors``, later ``End``.
    func look() throws -> LiveFigures {
        do { try ask() } catch {
            guard looks > 0 else { throw error }
            throw end(error)
        }
        if looks == 1 { listen() }
        return figures
    }

    private func ask() throws {
        let status = try client.json("GET", "/api/v1/status")
        let metrics = try client.json("GET", "/api/v1/metrics")
        let figures = try client.json("GET", "/api/v1/figures")
        guard status["state"]?.asString != nil, metrics["stages"]?.asArray != nil else {
            throw FrameHostErrors([
                FrameHostError(
                    .unavailable, place: client.base, what: "is not a control server",
                    remedy: "Check the address and the port.")
            ])
        }
        let look = ChainLook(status: status, metrics: metrics, figures: figures, now: Self.now())
        if plan?.fits(look) != true || looks % Self.looksPerPlan == 0 {
            plan = try PlanLook(client.json("GET", "/api/v1/plan"), from: client.base)
        }
        looks += 1
        state = look.state
        self.figures.take(look, plan: plan)
    }

    /// Seconds of the system's monotonic clock.
    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Sleeps for `seconds`; not at all if they are less than 0.
    static func sleep(_ seconds: Double) {
        let end = now() + seconds
        while case let left = end - now(), left > 0 {
            var time = timespec(tv_sec: Int(left), tv_nsec: Int((left - left.rounded(.down)) * 1e9))
            // A signal may wake it early.
            nanosleep(&time, nil)
        }
    }

    // MARK: The end

    /// Listens to the chain's events, which report its states: between two looks a chain can drain and end.
    private func listen() {
        let (client, listener) = (client, listener)
        let isStarted = Background.start {
            try? client.lines("/api/v1/events") { line in
                // Each is one line of bounded length; those of stages have `stage`.
                guard line.hasPrefix("data: "), line.utf8.count < 1 << 16,
                    let event = try? JSONReader.read(Array(line.utf8.dropFirst(6)), file: "event"),
                    event["event"]?.asString == "state", event["stage"]?.asString == nil,
                    let state = event["state"]?.asString
                else { return true }
                listener.heard.withLock { $0.state = state }
                return true
            }
            listener.heard.withLock { $0.hasEnded = true }
        }
        if !isStarted { listener.heard.withLock { $0.hasEnded = true } }
    }

    /// Why a look failed after one that succeeded.
    private func end(_ error: any Error) -> End {
        // The last event may still be on its way.
        let deadline = Self.now() + 1
        while !listener.heard.withLock({ $0.hasEnded }), Self.now() < deadline { usleep(10_000) }
        let heard = listener.heard.withLock { $0.state }
        let last = heard.isEmpty ? state : heard
        let errors = (error as? FrameHostErrors)?.errors ?? []
        // A refusal is reported as it is.
        guard errors.isEmpty || errors.contains(where: { $0.reason == .noServer }) else { return .fault(error) }
        switch last {
        case "draining", "finishing", "stopped": return .ended
        case "failed":
            return .fault(
                FrameHostError(
                    .unavailable, place: client.base, what: "the chain has failed",
                    remedy: "Read the chain's messages on standard error to see why."))
        default:
            var fault = errors.first ?? FrameHostError.wrap(error)
            fault.what = "the server has gone; the chain was \(last.isEmpty ? "running" : last) (\(fault.what))"
            fault.remedy = "Read the chain's last messages, and start it again."
            return .fault(fault)
        }
    }
}
