// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// How a track ends, in its ticks, which lie within ±``TimeBase/mostTicks`` and rise in the order of decoding.
///
/// A container gives the length of a track by the durations of its packets in decoding order, and its writer also
/// looks at the packet that is shown last. With B-frames, the packet decoded last and the one shown last differ. The
/// durations of both make the track as long as its pictures are shown.
struct TrackEnd: Sendable, Equatable {
    private var firstPTS = Int64.max
    private var firstDTS: Int64?
    private var lastDTS: Int64 = 0
    private var latestPTS = Int64.min
    private var latestDuration: Int64 = 1

    mutating func add(pts: Int64, dts: Int64, duration: Int64) {
        firstPTS = min(firstPTS, pts)
        firstDTS = firstDTS ?? dts
        lastDTS = dts
        if pts >= latestPTS { (latestPTS, latestDuration) = (pts, duration) }
    }

    /// The duration for a packet that was read back from a file with fragments, whose reader guesses durations. Only
    /// the durations of these two packets matter; all others follow from the times.
    func duration(pts: Int64, isLast: Bool) -> Int64 {
        if isLast, let firstDTS { return max(latestPTS + latestDuration - firstPTS - (lastDTS - firstDTS), 1) }
        return pts == latestPTS ? latestDuration : 1
    }
}

/// The time stamps of one track of a file.
///
/// Times come in as ``MediaTime`` or as an ``AudioPacket``'s ticks, and so lie within ±``TimeBase/mostTicks``. Adding
/// one tick to a decode time, so that it follows the one before, cannot overflow.
struct MuxerTrack {
    let stream: Int32
    private let timeBase: TimeBase
    /// The time on the chain's timeline that is 0 in the file.
    private let origin: MediaTime
    /// The time that was meant to be 0, before it was rounded to the pictures' ticks.
    private let begin: MediaTime
    /// ``origin`` in ticks of this track.
    private let originTicks: Int64
    /// For a sound, the time base of its packets.
    private let sourceBase: TimeBase
    private(set) var hasBegun = false
    private(set) var end = TrackEnd()
    private var lastDTS = Int64.min
    /// The duration for a packet without one: the time since the packet before.
    private var lastDuration: Int64 = 0
    /// Where a sample belongs that follows those before; nil in a track of packets.
    private(set) var samples: SampleTrack?
    /// What becomes of the bytes of the last packet.
    private(set) var fit = SampleTrack.Fit()
    /// The most ticks that the container can write: from one packet to the next, from decoding to showing, and for the
    /// duration of a packet.
    private let mostGap: Int64

    init(
        stream: Int32, timeBase: TimeBase, origin: MediaTime, begin: MediaTime, source: AudioTrackFormat?,
        mostGap: Int64, samples: SampleTrack? = nil
    ) {
        self.samples = samples
        self.stream = stream
        self.mostGap = mostGap
        self.timeBase = timeBase
        self.origin = origin
        self.begin = begin
        originTicks = timeBase.ticks(of: origin)
        sourceBase = source?.timeBase ?? .nanoseconds
    }

    /// The longest time from one packet to the next.
    var longestGap: MediaTime { timeBase.time(ofTicks: mostGap) }

    /// A picture's time in the file. Rounded like the origin, so that the first picture is at 0 even if its time is
    /// halfway between two ticks.
    private func ticks(_ time: MediaTime) -> Int64 {
        min(max(timeBase.ticks(of: time) - originTicks, -TimeBase.mostTicks), TimeBase.mostTicks)
    }

    /// Whether the container can express these times after those of the picture before.
    func reaches(pts: MediaTime, dts: MediaTime) -> Bool { reaches(ticks(pts), ticks(dts)) }

    private func reaches(_ pts: Int64, _ dts: Int64) -> Bool {
        pts - dts <= mostGap && (!hasBegun || dts <= lastDTS + mostGap)
    }

    func reaches(_ sound: AudioPacket) -> Bool {
        reaches(
            timeBase.ticks(of: sourceBase.time(ofTicks: sound.pts) - origin),
            timeBase.ticks(of: sourceBase.time(ofTicks: sound.dts) - origin))
    }

    mutating func setTimes(
        _ packet: UnsafeMutablePointer<AVPacket>, pts: MediaTime, dts: MediaTime, duration: MediaTime, byteCount: Int
    ) {
        let ticks = duration > .zero ? timeBase.ticks(of: duration) : nil
        set(packet, self.ticks(pts), self.ticks(dts), ticks, byteCount)
    }

    mutating func setTimes(_ packet: UnsafeMutablePointer<AVPacket>, _ sound: AudioPacket, delay: MediaTime) {
        func place(_ ticks: Int64) -> Int64 {
            let place = timeBase.ticks(of: sourceBase.time(ofTicks: ticks) + delay - origin)
            // Both containers may have rounded: the first packet is then half a tick before the delay.
            return delay > .zero && place == -1 ? 0 : place
        }
        let duration = sound.duration > 0 ? timeBase.ticks(of: sourceBase.time(ofTicks: sound.duration)) : nil
        set(packet, place(sound.pts), place(sound.dts), duration, sound.bytes.count)
    }

    // MARK: Motion

    /// Whether the container can express the time from one sample of motion to the next.
    func reaches(_ time: MediaTime, after last: MediaTime) -> Bool { motionTicks(time) - motionTicks(last) <= mostGap }

    /// The time of a sample. The origin was rounded to a tick of the pictures, and may be a little later than
    /// `begin`.
    private func motionTicks(_ time: MediaTime) -> Int64 { time >= begin ? max(ticks(time), 0) : ticks(time) }

    /// Sets the time of a value of motion, which is decoded and shown at once. Values of one time are a tick apart.
    ///
    /// - Parameters:
    ///   - end: The time of the next sample.
    ///   - after: How many values of this sample follow.
    mutating func setTime(
        _ packet: UnsafeMutablePointer<AVPacket>, _ time: MediaTime, until end: MediaTime, after: Int
    ) {
        let ticks = motionTicks(time)
        let dts = hasBegun ? max(ticks, lastDTS + 1) : ticks
        // libavformat moves the first packet of a fragment to the end of the last one before.
        set(packet, ticks, ticks, after > 0 ? 1 : max(motionTicks(end) - dts, 1), 0)
    }

    // MARK: Packets

    private mutating func set(
        _ packet: UnsafeMutablePointer<AVPacket>, _ pts: Int64, _ wishedDTS: Int64, _ duration: Int64?,
        _ byteCount: Int
    ) {
        if let found = samples?.fit(byteCount, at: wishedDTS) {
            fit = found
            packet.pointee.stream_index = stream
            guard found.duration > 0 || byteCount == 0 else { return }
            return set(packet, found.place, found.place, found.duration)
        }
        set(packet, pts, wishedDTS, duration)
    }

    private mutating func set(
        _ packet: UnsafeMutablePointer<AVPacket>, _ pts: Int64, _ wishedDTS: Int64, _ duration: Int64?
    ) {
        // Two decode times can fall on the same tick of a coarser container. The second one is then one tick later.
        let dts = hasBegun ? max(wishedDTS, lastDTS + 1) : wishedDTS
        if hasBegun { lastDuration = dts - lastDTS }
        hasBegun = true
        lastDTS = dts
        packet.pointee.stream_index = stream
        packet.pointee.dts = dts
        packet.pointee.pts = max(pts, dts)
        packet.pointee.duration = min(duration ?? lastDuration, mostGap)
        end.add(pts: packet.pointee.pts, dts: dts, duration: packet.pointee.duration)
    }
}
