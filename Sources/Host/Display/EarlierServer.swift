// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Rates

/// A control server of the release before, which counts and leaves the rates to its clients.
///
/// This file goes with the next release, and `LiveRates` and `ChainLook` then belong to the control server alone.
struct EarlierServer {
    private let client: ControlClient
    private var rates: LiveRates

    init(_ client: ControlClient, interval: Double) {
        self.client = client
        rates = LiveRates(interval: interval)
    }

    mutating func look() throws -> LiveFigures {
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
        return try rates.take(look) { try client.json("GET", "/api/v1/plan") }
    }
}
