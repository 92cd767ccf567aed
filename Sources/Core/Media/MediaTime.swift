// SPDX-License-Identifier: Apache-2.0

/// A moment or a span on the chain's timeline, in nanoseconds, within ±2^61 (73 years).
///
/// A live source counts in the monotonic time of capture. A file counts in its own time, rounded to the nearest
/// nanosecond; ``TimeBase`` restores its ticks.
///
/// Every initialiser keeps to ``range`` and takes the nearest end for a value beyond it, so that sums and differences
/// of three times never overflow an `Int64`. For times that come from outside, ``TimeBase/possibleTime(ofTicks:)``
/// tells whether they are plausible.
public struct MediaTime: Sendable, Hashable, Comparable, Codable {
    /// The time in nanoseconds.
    public let nanoseconds: Int64

    /// The range of ``nanoseconds``.
    public static let range: ClosedRange<Int64> = -(1 << 61)...1 << 61

    /// Makes a time of `nanoseconds`, or of the nearest end of ``range``.
    @inlinable public init(nanoseconds: Int64) {
        self.nanoseconds = Swift.min(Swift.max(nanoseconds, -(1 << 61)), 1 << 61)
    }

    /// Makes a time of `seconds`, rounded to the nearest nanosecond; 0 where `seconds` is NaN.
    @inlinable public init(seconds: Double) {
        let nanoseconds = (seconds * 1e9).rounded()
        self.init(nanoseconds: nanoseconds.isNaN ? 0 : Int64(Swift.min(Swift.max(nanoseconds, -0x1p61), 0x1p61)))
    }

    public init(from decoder: any Decoder) throws {
        self.init(nanoseconds: try decoder.container(keyedBy: CodingKeys.self).decode(Int64.self, forKey: .nanoseconds))
    }

    /// No time at all: the beginning of the timeline, or an unknown span.
    public static let zero = MediaTime(nanoseconds: 0)
    /// The earliest time there is.
    public static let min = MediaTime(nanoseconds: .min)
    /// The latest time there is.
    public static let max = MediaTime(nanoseconds: .max)

    /// The time in seconds, for display only.
    public var seconds: Double { Double(nanoseconds) / 1e9 }

    @inlinable public static func < (a: MediaTime, b: MediaTime) -> Bool { a.nanoseconds < b.nanoseconds }
    /// The sum, or the nearest end of ``range``.
    @inlinable public static func + (a: MediaTime, b: MediaTime) -> MediaTime {
        MediaTime(nanoseconds: a.nanoseconds &+ b.nanoseconds)
    }
    /// The difference, or the nearest end of ``range``.
    @inlinable public static func - (a: MediaTime, b: MediaTime) -> MediaTime {
        MediaTime(nanoseconds: a.nanoseconds &- b.nanoseconds)
    }
}

/// A fraction: a frame rate (30/1, 30000/1001), an aspect ratio. `0/1` stands for "unknown" or "variable".
public struct Rational: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The number above the line.
    public var numerator: Int32
    /// The number below the line; greater than 0.
    public var denominator: Int32

    /// The fraction `numerator` / `denominator`.
    ///
    /// - Precondition: `denominator > 0`.
    public init(_ numerator: Int32, _ denominator: Int32 = 1) {
        precondition(denominator > 0, "a fraction's denominator must be greater than 0")
        self.numerator = numerator
        self.denominator = denominator
    }

    /// Decodes a fraction from its two numbers. [any thread]
    ///
    /// - Throws: `DecodingError` for a denominator that is not greater than 0.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        (numerator, denominator) = (
            try values.decode(Int32.self, forKey: .numerator), try values.decode(Int32.self, forKey: .denominator)
        )
        guard denominator > 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .denominator, in: values, debugDescription: "a fraction's denominator must be greater than 0")
        }
    }

    /// Whether the fraction is 0, which stands for "unknown" or "variable".
    public var isZero: Bool { numerator == 0 }
    /// The fraction as a number.
    public var value: Double { Double(numerator) / Double(denominator) }
    public var description: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }
}

/// The length of one tick in seconds, as a fraction: 1/90000 for RTP video and MPEG-TS.
public struct TimeBase: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The number above the line; greater than 0.
    public var numerator: Int32
    /// The number below the line; greater than 0.
    public var denominator: Int32

    /// A tick of `numerator` / `denominator` seconds.
    ///
    /// - Precondition: Both are greater than 0.
    public init(_ numerator: Int32, _ denominator: Int32) {
        precondition(numerator > 0 && denominator > 0, "a time base must be greater than 0")
        self.numerator = numerator
        self.denominator = denominator
    }

    /// Decodes a time base from its two numbers. [any thread]
    ///
    /// - Throws: `DecodingError` for a numerator or denominator that is not greater than 0.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        (numerator, denominator) = (
            try values.decode(Int32.self, forKey: .numerator), try values.decode(Int32.self, forKey: .denominator)
        )
        guard numerator > 0, denominator > 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .denominator, in: values, debugDescription: "a time base must be greater than 0")
        }
    }

    /// A tick of one nanosecond, as the chain's own timeline has it.
    public static let nanoseconds = TimeBase(1, 1_000_000_000)
    public var description: String { "\(numerator)/\(denominator)" }

    /// The time of `ticks`, rounded to the nearest nanosecond; the nearest end of ``MediaTime/range`` for a time beyond
    /// it.
    public func time(ofTicks ticks: Int64) -> MediaTime { MediaTime(nanoseconds: nanoseconds(ofTicks: ticks)) }

    /// The time of `ticks`, or nil where no file or peer can mean it: ticks beyond ±``mostTicks``, or a time beyond
    /// ``MediaTime/range``.
    public func possibleTime(ofTicks ticks: Int64) -> MediaTime? {
        guard ticks.magnitude <= UInt64(Self.mostTicks) else { return nil }
        let nanoseconds = nanoseconds(ofTicks: ticks)
        return MediaTime.range.contains(nanoseconds) ? MediaTime(nanoseconds: nanoseconds) : nil
    }

    private func nanoseconds(ofTicks ticks: Int64) -> Int64 {
        Self.scale(ticks, Int64(numerator) * 1_000_000_000, Int64(denominator))
    }

    /// The most that ``ticks(of:)`` gives, to either side of 0: sums and differences of three do not overflow.
    public static let mostTicks: Int64 = 1 << 61

    /// The ticks of `time`, rounded to the nearest, within ±``mostTicks``; exact for a time that `time(ofTicks:)` gave
    /// in a base no finer than 1 ns.
    public func ticks(of time: MediaTime) -> Int64 {
        let ticks = Self.scale(time.nanoseconds, Int64(denominator), Int64(numerator) * 1_000_000_000)
        return min(max(ticks, -Self.mostTicks), Self.mostTicks)
    }

    /// `value × multiplier ÷ divisor`, rounded half away from zero, in 128 bits between; clamped to Int64.
    static func scale(_ value: Int64, _ multiplier: Int64, _ divisor: Int64) -> Int64 {
        let product = value.magnitude.multipliedFullWidth(by: multiplier.magnitude)
        let half = divisor.magnitude / 2
        let (low, carry) = product.low.addingReportingOverflow(half)
        let high = product.high + (carry ? 1 : 0)
        guard high < divisor.magnitude else { return value < 0 ? .min : .max }
        let quotient = divisor.magnitude.dividingFullWidth((high, low)).quotient
        guard quotient <= UInt64(Int64.max) else { return value < 0 ? .min : .max }
        return value < 0 ? -Int64(quotient) : Int64(quotient)
    }
}
