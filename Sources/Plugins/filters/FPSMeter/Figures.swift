// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The figures of the last second.
struct Figures: Equatable {
    var fpsByPTS: Double
    var fpsByArrival: Double
    var jitterMs: Double
    var latencyMs: Double

    /// One sentence for people.
    var text: String {
        "\(decimal(fpsByPTS, 2)) fps (\(decimal(fpsByArrival, 2)) by arrival), jitter \(decimal(jitterMs, 2)) ms,"
            + " latency \(decimal(latencyMs, 2)) ms."
    }

    /// The figures for programs, with three decimal places.
    var details: JSONNode {
        func number(_ value: Double) -> JSONNode { JSONNode(.number(decimal(value, 3))) }
        return [
            "fpsByPTS": number(fpsByPTS), "fpsByArrival": number(fpsByArrival), "jitterMs": number(jitterMs),
            "latencyMs": number(latencyMs),
        ]
    }

    /// Three short lines of ASCII for the picture.
    var lines: [[UInt8]] {
        ["\(decimal(fpsByPTS, 2)) FPS", "JITTER \(decimal(jitterMs, 1)) MS", "LATENCY \(decimal(latencyMs, 1)) MS"].map
        { Array($0.utf8) }
    }
}

/// `value` with exactly `places` decimal places, 1...6: `29.97`. Rounded half away from zero.
func decimal(_ value: Double, _ places: Int) -> String {
    let unit = [1.0, 10, 100, 1_000, 10_000, 100_000, 1_000_000][places]
    guard value.isFinite, value.magnitude < 9e12 else { return "0." + String(repeating: "0", count: places) }
    let scaled = Int64((value * unit).rounded())
    let fraction = String(scaled.magnitude % UInt64(unit))
    let sign = scaled < 0 ? "-" : ""
    return sign + String(scaled.magnitude / UInt64(unit)) + "." + String(repeating: "0", count: places - fraction.count)
        + fraction
}
