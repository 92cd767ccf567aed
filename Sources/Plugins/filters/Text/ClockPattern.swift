// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A pattern of strftime(3), and `%3N` for milliseconds as date(1) has it. Names of days and months are English: the C
/// locale's.
struct ClockPattern: Equatable, Sendable {
    let text: String
    /// The pattern for strftime: ends with 0, with `%3N` replaced by ``millisecondMark``.
    fileprivate let bytes: [CChar]

    static let date = ClockPattern(checked: "%Y-%m-%d")
    static let time = ClockPattern(checked: "%H:%M:%S")
    /// A control character that strftime copies, and that no pattern contains.
    fileprivate static let millisecondMark: UInt8 = 1
    private static let conversions = Array("aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%".utf8)
    private static let flags = Array("_-0^#EO123456789".utf8)

    /// - Throws: ``OptionFault`` for a conversion that strftime lacks.
    init(_ text: String) throws(OptionFault) {
        var rest = Substring(text.replacing("%3N", with: "")).utf8
        guard text.utf8.allSatisfy({ $0 >= 32 }) else {
            throw OptionFault(
                "the pattern of {date} or {time} must not contain a control character",
                remedy: "Remove it, or put the line break outside the braces.")
        }
        while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[percent...].dropFirst()
            let conversion = rest.drop(while: Self.flags.contains)
            guard let letter = conversion.first, Self.conversions.contains(letter) else {
                let written = "%" + String(Substring(rest.prefix(rest.count - conversion.count + 1)))
                throw OptionFault(
                    "'\(written)' is not a conversion of strftime(3)",
                    remedy:
                        "Use those of strftime(3), such as %Y-%m-%d %H:%M:%S. Also allowed: %3N for milliseconds, %% for a percent sign."
                )
            }
            rest = conversion.dropFirst()
        }
        self.init(checked: text)
    }

    private init(checked text: String) {
        self.text = text
        let mark = String(UnicodeScalar(Self.millisecondMark))
        bytes = text.replacing("%3N", with: mark).utf8.map { CChar(bitPattern: $0) } + [0]
    }

    static func == (a: ClockPattern, b: ClockPattern) -> Bool { a.text == b.text }
}

/// A pattern and its last result: strftime runs once a second, not once a frame.
struct ClockText {
    private let pattern: ClockPattern
    private let isUTC: Bool
    private var second = Int.min
    private var result: [UInt8]
    private var count = 0

    init(_ pattern: ClockPattern, isUTC: Bool) {
        self.pattern = pattern
        self.isUTC = isUTC
        result = Array(repeating: 0, count: 256)
    }

    /// Appends the text of a moment, in nanoseconds since 1970 (UTC). Allocates nothing (localtime_r(3) may when the
    /// time zone changes).
    mutating func append(_ unixNanoseconds: Int64, to text: inout [UInt8]) {
        let past = unixNanoseconds % 1_000_000_000
        let now = Int(unixNanoseconds / 1_000_000_000) - (past < 0 ? 1 : 0)
        if now != second {
            second = now
            var moment = time_t(now)
            var fields = tm()
            if isUTC { gmtime_r(&moment, &fields) } else { localtime_r(&moment, &fields) }
            count = result.withUnsafeMutableBytes {
                // 0 also means "does not fit": such a pattern gives no text.
                strftime($0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count, pattern.bytes, &fields)
            }
        }
        for index in 0..<count {
            if result[index] == ClockPattern.millisecondMark {
                text.appendDigits(UInt64((past + 1_000_000_000) % 1_000_000_000 / 1_000_000), atLeast: 3)
            } else {
                text.append(result[index])
            }
        }
    }
}
