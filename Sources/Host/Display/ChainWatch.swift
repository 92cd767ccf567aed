// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
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
        let state = Mutex("")
        let end = WaitableFlag()
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
        let look = ChainLook(status: status, metrics: metrics, figures: figures, now: MonotonicTime.seconds())
        if plan?.fits(look) != true || looks % Self.looksPerPlan == 0 {
            plan = try PlanLook(client.json("GET", "/api/v1/plan"), from: client.base)
        }
        looks += 1
        state = look.state
        self.figures.take(look, plan: plan)
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
                listener.state.withLock { $0 = state }
                return true
            }
            listener.end.raise()
        }
        if !isStarted { listener.end.raise() }
    }

    /// Why a look failed after one that succeeded.
    private func end(_ error: any Error) -> End {
        // The last event may still be on its way.
        listener.end.wait(milliseconds: 1000)
        let heard = listener.state.withLock { $0 }
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
