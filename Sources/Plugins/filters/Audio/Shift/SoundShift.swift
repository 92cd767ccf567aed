// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How much later sound is heard, written `"-120ms"` or `"1.5s"`; less than 0 is earlier.
struct SoundShift: OptionValue, Equatable, CustomStringConvertible {
    var time: MediaTime

    /// Ten minutes.
    static let longest = MediaTime(nanoseconds: 600_000_000_000)

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> SoundShift {
        guard let text = node.asString, let time = time(of: text) else {
            throw OptionFault(
                "\(node.text()) must be a time with its unit, ms or s",
                remedy: "Write it as \"-120ms\" (earlier), \"120ms\" or \"1.5s\" (later).")
        }
        guard max(time, .zero - time) <= longest else {
            throw OptionFault("\(node.text()) must be from -600s to 600s", remedy: "Use a time in this range.")
        }
        return SoundShift(time: time)
    }

    private static func time(of text: String) -> MediaTime? {
        let (unit, seconds) = text.hasSuffix("ms") ? (2, 0.001) : (1, 1.0)
        let number = text.dropLast(unit)
        guard text.hasSuffix("s"), number.allSatisfy({ "+-.0123456789".contains($0) }), let value = Double(number)
        else {
            return nil
        }
        return MediaTime(seconds: value * seconds)
    }

    var description: String {
        let milliseconds = Double(time.nanoseconds) / 1e6
        return milliseconds == milliseconds.rounded() ? "\(Int(milliseconds))ms" : "\(milliseconds)ms"
    }
    var optionJSON: JSONNode { .string(description) }
    static var optionTypeName: String { "time" }
    static var optionSchema: JSONNode {
        ["type": "string", "pattern": "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)(ms|s)$"]
    }
}
