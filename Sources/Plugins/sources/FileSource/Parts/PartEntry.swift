// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Finds the picture that lies a number of pictures before a tick, by the packets of a track. In ticks of the
/// track.
///
/// It moves the file's read position, so a reader must enter the file again afterwards.
struct PartEntry {
    private let file: MediaFile
    private let track: Int

    init(_ file: MediaFile, track: Int) {
        self.file = file
        self.track = track
    }

    /// - Parameters:
    ///   - count: How many pictures; 0 gives `end`.
    ///   - begin: Where the timeline begins; nothing before it is looked at.
    ///   - rate: Nominal pictures per second; zero when unknown.
    /// - Returns: The tick of the `count`-th picture before `end`, or `begin` where there are fewer or the file
    ///   does not say.
    func tick(of count: Int, before end: Int64, from begin: Int64, rate: Rational) throws -> Int64 {
        guard count > 0, end > begin else { return end }
        let base = file.timeBase(track)
        let seconds = Double(count) / (rate.isZero ? 10 : rate.value) + 1
        var distance = max(base.ticks(of: MediaTime(seconds: seconds)), 1)
        while true {
            let place = end.minus(distance)
            guard place > begin, let ticks = try ticks(from: place, before: end) else { return begin }
            if ticks.count >= count { return ticks[ticks.count - count] }
            let (next, isTooMuch) = distance.multipliedReportingOverflow(by: 4)
            distance = isTooMuch ? .max : next
        }
    }

    /// The ticks of all pictures from the keyframe near `place` up to `end`, rising; nil where the file cannot seek
    /// there, or lacks times.
    private func ticks(from place: Int64, before end: Int64) throws -> [Int64]? {
        guard file.seek(to: place, track: track) else { return nil }
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        guard packet != nil else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a packet",
                remedy: "Free some memory, and start the chain again.")
        }
        var ticks: [Int64] = []
        var keyframe: Int64?
        let base = file.timeBase(track)
        while true {
            let result = file.read(into: packet)
            if result == fh_averror_again { continue }
            guard result >= 0 else { break }
            defer { av_packet_unref(packet) }
            guard packet!.pointee.stream_index == track else { continue }
            let (pts, dts) = (packet!.pointee.pts, packet!.pointee.dts)
            guard TrackTimes.isPossible(pts, base), TrackTimes.isPossible(dts, base) else { return nil }
            // No later packet is shown before it is decoded.
            if dts >= end { break }
            if keyframe == nil, packet!.pointee.flags & AV_PKT_FLAG_KEY != 0 { keyframe = pts }
            // Pictures that are shown before the keyframe may have been decoded before it, so not all of them are
            // read here.
            if let keyframe, keyframe <= pts, pts < end { ticks.append(pts) }
        }
        return ticks.sorted()
    }
}
