// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Puts the values of the fields into the text, frame by frame, and tells whether it has changed.
struct TextValues {
    /// A part of the template, with its clocks moved into `clocks`.
    private enum Part {
        case fixed([UInt8])
        case clock(Int)
        case frame, pts, seconds, fps
        case motion(TextTemplate.Part.Angle)
    }

    private let parts: [Part]
    private var clocks: [ClockText] = []
    private var rate = RateWindow()
    private var shownRate = 0.0
    private var nextRate = Int64.min
    /// UTF-8, lines end with a line feed.
    private(set) var text: [UInt8] = []
    private var next: [UInt8] = []

    /// - Parameters:
    ///   - name: What `{name}` stands for.
    ///   - chain: What `{chain}` stands for.
    init(_ template: TextTemplate, name: String, chain: String, isUTC: Bool) {
        var clocks: [ClockText] = []
        parts = template.parts.map { part in
            switch part {
            case .literal(let bytes): return .fixed(bytes)
            case .name: return .fixed(Array(name.utf8))
            case .chain: return .fixed(Array(chain.utf8))
            case .clock(let pattern):
                clocks.append(ClockText(pattern, isUTC: isUTC))
                return .clock(clocks.count - 1)
            case .frame: return .frame
            case .pts: return .pts
            case .seconds: return .seconds
            case .fps: return .fps
            case .motion(let angle): return .motion(angle)
            }
        }
        self.clocks = clocks
        // The text never needs more room than the longest fields of the longest template, so growth ends with the first
        // frames.
        text.reserveCapacity(1024)
        next.reserveCapacity(1024)
    }

    /// Takes over the measured rate when the text is replaced.
    mutating func takeRate(from other: TextValues) {
        rate = other.rate
        shownRate = other.shownRate
        nextRate = other.nextRate
    }

    /// - Parameters:
    ///   - pts: Nanoseconds.
    ///   - unixTime: When the picture was captured, in nanoseconds since 1970.
    ///   - motion: How the camera moved; nil where that is unknown.
    /// - Returns: True when the text has changed.
    mutating func update(pts: Int64, frame: UInt64, unixTime: Int64, motion: Motion? = nil) -> Bool {
        measure(pts)
        next.removeAll(keepingCapacity: true)
        for part in parts {
            switch part {
            case .fixed(let bytes): next.append(contentsOf: bytes)
            case .clock(let index): clocks[index].append(unixTime, to: &next)
            case .frame: next.appendDigits(frame)
            case .pts: next.appendTime(pts)
            case .seconds: next.appendThousandths(pts / 1_000_000)
            case .fps: next.appendTenths(Int64((shownRate * 10).rounded()))
            case .motion(let angle): next.appendDegrees(angle == .roll ? motion?.roll : motion?.pitch)
            }
        }
        guard next != text else { return false }
        swap(&next, &text)
        return true
    }

    /// Measures the frames per second by their time stamps over the last second. The shown value changes once a second
    /// of their time, and as soon as there is a first one.
    private mutating func measure(_ pts: Int64) {
        rate.add(pts)
        guard let value = rate.rate, pts >= nextRate || pts < nextRate - 2_000_000_000 || shownRate == 0 else { return }
        shownRate = min(value, 1e9)
        nextRate = pts + 1_000_000_000
    }
}

extension [UInt8] {
    /// Decimal digits, with zeros before them up to `least`. No allocation where there is room.
    mutating func appendDigits(_ value: UInt64, atLeast least: Int = 1) {
        var divisor: UInt64 = 1
        var digits = 1
        while value / divisor >= 10 || digits < least {
            divisor *= 10
            digits += 1
        }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
            divisor /= 10
        }
    }

    /// `62.345` of thousandths.
    mutating func appendThousandths(_ value: Int64) {
        if value < 0 { append(UInt8(ascii: "-")) }
        appendDigits(value.magnitude / 1000)
        append(UInt8(ascii: "."))
        appendDigits(value.magnitude % 1000, atLeast: 3)
    }

    /// `29.9` of tenths.
    mutating func appendTenths(_ value: Int64) {
        appendDigits(value.magnitude / 10)
        append(UInt8(ascii: "."))
        appendDigits(value.magnitude % 10)
    }

    /// `-12.3` of radians; `–` where they are unknown.
    mutating func appendDegrees(_ radians: Double?) {
        guard let radians, radians.magnitude <= 1000 else { return append(contentsOf: "–".utf8) }
        let tenths = Int64((radians * 1800 / .pi).rounded())
        if tenths < 0 { append(UInt8(ascii: "-")) }
        appendTenths(Int64(tenths.magnitude))
    }

    /// `0:01:02.345` of nanoseconds.
    mutating func appendTime(_ nanoseconds: Int64) {
        if nanoseconds < 0 { append(UInt8(ascii: "-")) }
        let seconds = nanoseconds.magnitude / 1_000_000_000
        appendDigits(seconds / 3600)
        append(UInt8(ascii: ":"))
        appendDigits(seconds / 60 % 60, atLeast: 2)
        append(UInt8(ascii: ":"))
        appendDigits(seconds % 60, atLeast: 2)
        append(UInt8(ascii: "."))
        appendDigits(nanoseconds.magnitude / 1_000_000 % 1000, atLeast: 3)
    }
}
