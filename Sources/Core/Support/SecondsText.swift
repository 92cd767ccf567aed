// SPDX-License-Identifier: Apache-2.0

/// `61.366`: seconds with three places, without Foundation.
func text(seconds: Double) -> String {
    let milliseconds = Int64((seconds * 1000).rounded())
    let fraction = String(milliseconds.magnitude % 1000)
    return
        "\(milliseconds < 0 ? "-" : "")\(milliseconds.magnitude / 1000).\(String(repeating: "0", count: 3 - fraction.count))\(fraction)"
}
