// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The motion that comes on an input of its own, kept until the pictures have reached its time.
///
/// Samples lie in a ring whose memory is taken once. A recording reads them from the time of a file's first picture on,
/// as far as its pictures are written: so a file has the motion of its pictures, and is never longer because of it.
/// Used on the stage thread.
final class MotionInput {
    let format: MotionFormat
    private let samples: UnsafeMutableBufferPointer<MotionSample>
    /// How many samples have come; the latest of them are kept.
    private var count = 0
    /// The number of the next sample for the recording.
    private var next = 0
    private var latest: MediaTime?
    /// The time of the file's first picture.
    private var begin = MediaTime.zero
    /// Whether a recording has missed samples, because the ring had dropped them.
    private(set) var hasBeenTooSmall = false

    /// How many pictures motion can be ahead: an encoder can hold back as many, and the queues some more.
    private static let pictures = 64.0
    private static let leastSeconds = 30.0

    private static func capacity(_ format: MotionFormat, _ pictures: VideoFormat?, preEventSeconds: Double) -> Int {
        // With more samples than declared the ring holds fewer seconds.
        let rate = format.sampleRate > 0 ? min(max(format.sampleRate * 1.25, 50), 100_000) : 1000
        let pictureRate = pictures.map(\.frameRate.value) ?? 0
        let ahead = pictureRate > 0 ? min(max(Self.pictures / pictureRate, leastSeconds), 600) : leastSeconds
        return Int(rate * (ahead + preEventSeconds))
    }

    /// The memory that `init` takes, in bytes.
    static func memory(_ format: MotionFormat, _ pictures: VideoFormat?, preEventSeconds: Double) -> Int {
        capacity(format, pictures, preEventSeconds: preEventSeconds) * MemoryLayout<MotionSample>.stride
    }

    /// [control thread]
    ///
    /// - Parameter preEventSeconds: How far back a recording can begin.
    init(_ format: MotionFormat, _ pictures: VideoFormat?, preEventSeconds: Double) {
        self.format = format
        samples = .allocate(capacity: Self.capacity(format, pictures, preEventSeconds: preEventSeconds))
        // Touches all pages now, as the pictures' ring does.
        samples.initialize(repeating: MotionSample(time: .zero))
    }

    deinit { samples.deallocate() }

    private var oldest: Int { max(0, count - samples.count) }

    /// Keeps the samples of a block. Samples that are not later than the one before are left out: a track's times
    /// must rise.
    func add(_ block: borrowing MotionBlock) {
        for index in 0..<block.sampleCount {
            let sample = block[index]
            if let latest, sample.time <= latest { continue }
            latest = sample.time
            samples[count % samples.count] = sample
            count += 1
        }
    }

    /// Starts a file: `take` continues with the first sample at or after `time`.
    func begin(at time: MediaTime) {
        begin = time
        next = count
        while next > oldest, samples[(next - 1) % samples.count].time >= time { next -= 1 }
    }

    /// Gives the samples that are earlier than `time` and were not given yet.
    func take(before time: MediaTime, _ body: (MotionSample) throws -> Void) rethrows {
        if next < oldest {
            hasBeenTooSmall = true
            next = oldest
        }
        while next < count {
            let sample = samples[next % samples.count]
            guard sample.time < time else { return }
            next += 1
            // With B-frames the first picture is decoded before it is shown, and motion comes in between.
            if sample.time >= begin { try body(sample) }
        }
    }
}
