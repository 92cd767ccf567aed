// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Rates
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
    private let interval: Double
    /// Set where the server is of the release before.
    private var earlier: EarlierServer?
    private var isFirst = true
    private var state = ""
    private let listener = Listener()

    /// What the server's events have told. The stream ends with the chain.
    private final class Listener: @unchecked Sendable {
        let state = Mutex("")
        let end = WaitableFlag()
    }

    /// - Parameter interval: Seconds between looks.
    init(_ client: ControlClient, interval: Double) {
        self.client = client
        self.interval = interval
    }

    /// The chain as it is now; the first look has no rates.
    ///
    /// - Throws: of the first look ``FrameHostErrors``, later ``End``.
    func look() throws -> LiveFigures {
        let figures: LiveFigures
        do { figures = try ask() } catch {
            guard !isFirst else { throw error }
            throw end(error)
        }
        state = figures.state
        if isFirst { listen() }
        isFirst = false
        return figures
    }

    private func ask() throws -> LiveFigures {
        func figures(_ query: String) throws -> LiveFigures? {
            try client.json("GET", "/api/v1/metrics" + query)["rates"].flatMap(LiveFigures.init)
        }
        // A server of the release before refuses the parameter.
        if earlier == nil, let usual = try figures("") {
            return interval > LiveRates.usualInterval ? try figures("?interval=\(interval)") ?? usual : usual
        }
        if earlier == nil { earlier = EarlierServer(client, interval: interval) }
        return try earlier!.look()
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
