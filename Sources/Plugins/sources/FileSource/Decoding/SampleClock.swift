// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Counts the times of decoded sound in samples, as long as the input's times agree: a value.
///
/// A container's ticks may be coarser than samples (Matroska: 1 ms), and two blocks must neither overlap nor leave a
/// sample out. A time that is a little off the count is in *doubt*: some inputs' times jitter, others go on elsewhere, as
/// where recordings were joined. The blocks after it tell, so that it waits for a tenth of a second of them.
struct SampleClock {
    struct Place: Equatable {
        var pts: MediaTime
        /// Which of the block's samples are given.
        var samples: Range<Int>
        var isDiscontinuity: Bool
    }

    enum Decision: Equatable {
        /// The earliest block waits for those after it, or there is none.
        case undecided
        /// Where the earliest block, of so many samples, is heard.
        case place(Place, of: Int)
        /// None of its so many samples is heard: they lie before 0, after the end, or where sound is already.
        case leftOut(Int)
    }

    private struct Block {
        var samples: Int
        var time: MediaTime?
    }

    /// A time that is off the count by more than this is a gap or an overlap, whatever follows.
    static let tolerance = MediaTime(nanoseconds: 40_000_000)
    /// A time that is off by more than this is in doubt.
    static let doubt = MediaTime(nanoseconds: 3_000_000)
    /// So much sound behind a doubtful block decides, or so many blocks.
    static let deciding = MediaTime(nanoseconds: 100_000_000)
    private static let mostWaiting = 16

    private let sampleRate: Int
    private let doubt: MediaTime
    private var anchor: MediaTime?
    private var count: Int64 = 0
    private var waiting: [Block] = []
    private var isOver = false

    /// - Parameter isLive: Whether sound comes when it is captured. No time is then in doubt, so that none waits.
    init(sampleRate: Int, isLive: Bool = false) {
        self.sampleRate = max(sampleRate, 1)
        doubt = isLive ? Self.tolerance : Self.doubt
        waiting.reserveCapacity(Self.mostWaiting + 1)
    }

    var hasBegun: Bool { anchor != nil }

    /// When the next sample is heard.
    var end: MediaTime { (anchor ?? .zero) + duration(of: count) }

    func duration(of samples: some BinaryInteger) -> MediaTime {
        let count = Int64(clamping: samples)
        let rate = Int64(sampleRate)
        return MediaTime(nanoseconds: count / rate * 1_000_000_000 + count % rate * 1_000_000_000 / rate)
    }

    /// Adds a block that was decoded.
    ///
    /// - Parameter time: What the input says; nil where it says nothing.
    mutating func add(_ samples: Int, at time: MediaTime?) { waiting.append(Block(samples: samples, time: time)) }

    /// Says that no block follows.
    mutating func endInput() { isOver = true }

    /// Decides about the earliest block.
    ///
    /// - Parameter upper: Nothing at or after this time is heard.
    mutating func next(before upper: MediaTime?) -> Decision {
        guard let first = waiting.first else { return .undecided }
        if anchor == nil { anchor = first.time ?? .zero }
        let late = (first.time ?? end) - end
        guard let isStep = isStep(late) else { return .undecided }
        waiting.removeFirst()
        guard isStep else { return place(first, from: 0, before: upper, isDiscontinuity: false) }
        if late > .zero {
            (anchor, count) = (end + late, 0)
            return place(first, from: 0, before: upper, isDiscontinuity: true)
        }
        let left = Int(clamping: samplesCeiling(.zero - late))
        guard left < first.samples else { return .leftOut(first.samples) }
        return place(first, from: left, before: upper, isDiscontinuity: true)
    }

    /// Whether the input goes on where the earliest block says; nil while that is open.
    private func isStep(_ late: MediaTime) -> Bool? {
        let distance = max(late, .zero - late)
        guard distance > doubt else { return false }
        guard distance <= Self.tolerance else { return true }
        var (following, seen) = (MediaTime.zero, 0)
        var due = end + duration(of: waiting[0].samples)
        for block in waiting.dropFirst() {
            let other = (block.time ?? due) - due
            // Times that come back to the count jitter.
            guard (late > .zero) == (other > .zero), max(other, .zero - other) > doubt else { return false }
            let length = duration(of: block.samples)
            (due, following, seen) = (due + length, following + length, seen + 1)
            if following >= Self.deciding || seen >= Self.mostWaiting { return true }
        }
        return isOver ? seen > 0 : nil
    }

    /// The place of a block from its sample `from` on.
    private mutating func place(_ block: Block, from: Int, before upper: MediaTime?, isDiscontinuity: Bool) -> Decision
    {
        let begin = end
        count += Int64(block.samples - from)
        let skipped = begin < .zero ? Int(clamping: samplesCeiling(.zero - begin)) : 0
        let kept =
            upper.map { min(Int(clamping: samplesCeiling($0 - begin)), block.samples - from) } ?? block.samples - from
        guard skipped < kept else { return .leftOut(block.samples) }
        return .place(
            Place(
                pts: begin + duration(of: skipped), samples: from + skipped..<from + kept,
                isDiscontinuity: isDiscontinuity),
            of: block.samples)
    }

    /// How many samples begin within `time`; 0 for a time that is not above 0.
    private func samplesCeiling(_ time: MediaTime) -> Int64 {
        guard time > .zero else { return 0 }
        let rate = Int64(sampleRate)
        let (seconds, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let (whole, isTooMuch) = seconds.multipliedReportingOverflow(by: rate)
        return isTooMuch ? .max / 2 : whole + (rest * rate + 999_999_999) / 1_000_000_000
    }
}

/// Samples that were decoded and wait for their place, interleaved; grows with the most that wait.
struct DecodedSound: ~Copyable {
    private var buffer = UnsafeMutableBufferPointer<Float>(start: nil, count: 0)
    private var held = 0
    private var channels = 1

    deinit { buffer.deallocate() }

    /// Makes room for `most` samples of each channel, and has `take` fill it. Returns how many it took.
    mutating func append(atMost most: Int, channels: Int, _ take: (UnsafeMutableBufferPointer<Float>) -> Int) -> Int {
        self.channels = channels
        let needed = (held + most) * channels
        if buffer.count < needed {
            let larger = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2 * needed)
            _ = larger.update(fromContentsOf: buffer.prefix(held * channels))
            buffer.deallocate()
            buffer = larger
        }
        let taken = take(UnsafeMutableBufferPointer(rebasing: buffer[(held * channels)...]))
        held += taken
        return taken
    }

    /// Some of the earliest samples.
    func samples(_ range: Range<Int>) -> UnsafeBufferPointer<Float> {
        UnsafeBufferPointer(rebasing: buffer[range.lowerBound * channels..<range.upperBound * channels])
    }

    mutating func removeAll() { held = 0 }

    /// Forgets the earliest samples.
    mutating func drop(_ samples: Int) {
        held -= samples
        guard held > 0, let start = buffer.baseAddress else { return }
        start.update(from: start + samples * channels, count: held * channels)
    }
}
