// SPDX-License-Identifier: Apache-2.0

/// Whether so many frames are covered completely because their search was late that the picture is of little use.
///
/// A value without a clock: time is that of the frames.
struct LateWatch {
    /// Of the frames of this time, in nanoseconds, the share that may be late; and the one below which all is well again.
    static let span: Int64 = 10_000_000_000
    static let mostShare = 0.2
    private static let wellShare = 0.1
    private static let partCount = 10

    /// Frames and late frames of each second of the last ten.
    private var frames = InlineArray<10, Int>(repeating: 0)
    private var lateFrames = InlineArray<10, Int>(repeating: 0)
    private var part: Int64?
    private var last: Int64?
    /// The time that the frames have taken, nanoseconds: a step back takes none, and a long one no more than ``span``.
    private var elapsed: Int64 = 0
    /// In all.
    private(set) var count = 0
    private(set) var lateCount = 0
    /// Whether too many are late.
    private(set) var isTooLate = false
    /// The share of late frames among the last ten seconds' frames, 0...1.
    private(set) var share = 0.0
    private let usualCount: Double
    /// Whether so many frames came that their share says something: those of a second, and at least ten.
    var isEnough: Bool { Double(count) >= max(usualCount / 10, 10) }

    /// - Parameter frameRate: Frames a second.
    init(frameRate: Double) { usualCount = max(min(frameRate, 1000), 1) * Double(Self.span) / 1e9 }

    /// Notes a frame.
    ///
    /// - Returns: Whether ``isTooLate`` has changed.
    mutating func note(isLate: Bool, time: Int64) -> Bool {
        count += 1
        if isLate { lateCount += 1 }
        let (step, overflows) = time.subtractingReportingOverflow(last ?? time)
        last = time
        elapsed += overflows ? 0 : min(max(step, 0), Self.span)
        begin(elapsed / (Self.span / Int64(Self.partCount)))
        let index = Int((part ?? 0) % Int64(Self.partCount))
        frames[index] += 1
        if isLate { lateFrames[index] += 1 }
        var (all, late) = (0, 0)
        for index in 0..<Self.partCount {
            all += frames[index]
            late += lateFrames[index]
        }
        // In the first seconds, what the whole time will have counts.
        share = Double(late) / (elapsed >= Self.span / 2 ? Double(all) : max(Double(all), usualCount * 0.9))
        let was = isTooLate
        isTooLate = share >= (was ? Self.wellShare : Self.mostShare)
        return isTooLate != was
    }

    /// Makes room for the second of this number.
    private mutating func begin(_ next: Int64) {
        defer { part = next }
        guard let last = part, next != last else { return }
        for step in 0..<min(next - last, Int64(Self.partCount)) {
            let index = Int((next - step) % Int64(Self.partCount))
            frames[index] = 0
            lateFrames[index] = 0
        }
    }
}
