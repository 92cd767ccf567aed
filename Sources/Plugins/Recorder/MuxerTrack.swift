// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// How a track ends, in its ticks, which lie within ±``TimeBase/mostTicks`` and rise in the order of decoding.
///
/// A container says how long a track is by the durations of its packets in the order of decoding, and its writer looks
/// at the one shown last too. With B-frames these are two packets: both together make the track as long as its pictures
/// are shown.
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

    /// The duration to write a packet with that was read back: a reader of fragments guesses durations, and all but
    /// these two follow from the
    /// times.
    func duration(pts: Int64, isLast: Bool) -> Int64 {
        if isLast, let firstDTS { return max(latestPTS + latestDuration - firstPTS - (lastDTS - firstDTS), 1) }
        return pts == latestPTS ? latestDuration : 1
    }
}

/// The time stamps of one track of a file.
///
/// Times come in as ``MediaTime`` or as an ``AudioPacket``'s ticks, and so lie within ±``TimeBase/mostTicks``; the one
/// tick by which a decode time is put behind the one before does not lead out of Int64.
struct MuxerTrack {
    let stream: Int32
    private let timeBase: TimeBase
    /// The time on the chain's line that is 0 in the file.
    private let origin: MediaTime
    /// The same in the pictures' ticks.
    private let originTicks: Int64
    /// Of a sound: the tick its packets come in.
    private let sourceBase: TimeBase
    private(set) var hasBegun = false
    private(set) var end = TrackEnd()
    private var lastDTS = Int64.min
    /// Duration for a picture that has none: that of the one before.
    private var lastDuration: Int64 = 0
    /// Most ticks from one packet to the next, from decoding to showing, and of a packet: what the container can write.
    private let mostGap: Int64

    init(stream: Int32, timeBase: TimeBase, origin: MediaTime, source: AudioTrackFormat?, mostGap: Int64) {
        self.stream = stream
        self.mostGap = mostGap
        self.timeBase = timeBase
        self.origin = origin
        originTicks = timeBase.ticks(of: origin)
        sourceBase = source?.timeBase ?? .nanoseconds
    }

    /// The longest time from one packet to the next.
    var longestGap: MediaTime { timeBase.time(ofTicks: mostGap) }

    /// A picture's time in the file. Rounded as the origin was: the first picture is at 0, though its time lie in the
    /// middle between two ticks.
    private func ticks(_ time: MediaTime) -> Int64 {
        min(max(timeBase.ticks(of: time) - originTicks, -TimeBase.mostTicks), TimeBase.mostTicks)
    }

    /// Whether the container can say when a picture of these times comes after the one before it.
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
        _ packet: UnsafeMutablePointer<AVPacket>, pts: MediaTime, dts: MediaTime, duration: MediaTime
    ) {
        let ticks = duration > .zero ? timeBase.ticks(of: duration) : nil
        set(packet, self.ticks(pts), self.ticks(dts), ticks)
    }

    mutating func setTimes(_ packet: UnsafeMutablePointer<AVPacket>, _ sound: AudioPacket) {
        let (pts, dts) = (sourceBase.time(ofTicks: sound.pts), sourceBase.time(ofTicks: sound.dts))
        let duration = sound.duration > 0 ? timeBase.ticks(of: sourceBase.time(ofTicks: sound.duration)) : nil
        set(packet, timeBase.ticks(of: pts - origin), timeBase.ticks(of: dts - origin), duration)
    }

    private mutating func set(
        _ packet: UnsafeMutablePointer<AVPacket>, _ pts: Int64, _ wishedDTS: Int64, _ duration: Int64?
    ) {
        // Two decode times can fall on one of a coarser container's ticks; there they follow each other by one.
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
