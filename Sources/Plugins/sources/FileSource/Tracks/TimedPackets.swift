// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Reads the packets of a container with their times on the input's timeline: the one place where times of packets
/// are corrected.
///
/// Packets whose times are in doubt are kept until the timeline has decided. Used by one thread at a time.
final class TimedPackets {
    /// What becomes of a track's packets.
    enum Use {
        case given
        /// Only the times are told to the timeline.
        case lookedAt
        case leftOut
    }

    private(set) var timeline = InputTimeline(closesGaps: false)
    /// Packets that wait; nil for one whose times alone are wanted.
    private var waiting: [UnsafeMutablePointer<AVPacket>?] = []
    /// What reading ended with, while packets still wait.
    private var readEnd: Int32?

    /// Packets that were read before their time (``readAhead(_:until:)``).
    private var early: [UnsafeMutablePointer<AVPacket>] = []

    deinit {
        begin(timeline)
        for packet in early {
            var packet: UnsafeMutablePointer<AVPacket>? = packet
            av_packet_free(&packet)
        }
    }

    /// Reads until a packet is the wanted one. ``read(_:into:_:)`` gives them all.
    ///
    /// - Parameter mostBytes: What is kept at most.
    /// - Returns: Whether it came.
    func readAhead(
        _ container: UnsafeMutablePointer<AVFormatContext>, mostBytes: Int, until isWanted: (AVPacket) -> Bool
    ) -> Bool {
        var byteCount = 0
        while byteCount < mostBytes {
            var packet = av_packet_alloc()
            guard let packet, [0, fh_averror_again].contains(av_read_frame(container, packet)) else {
                av_packet_free(&packet)
                return false
            }
            early.append(packet)
            byteCount += Int(packet.pointee.size) + 512
            if isWanted(packet.pointee) { return true }
        }
        return false
    }

    private func readOne(
        _ container: UnsafeMutablePointer<AVFormatContext>, into packet: UnsafeMutablePointer<AVPacket>
    ) -> Int32 {
        while !early.isEmpty {
            var first: UnsafeMutablePointer<AVPacket>? = early.removeFirst()
            av_packet_move_ref(packet, first)
            av_packet_free(&first)
            if packet.pointee.data != nil { return 0 }
        }
        return av_read_frame(container, packet)
    }

    /// Begins anew, at a place whose times are unrelated to those that were read last.
    func begin(_ timeline: InputTimeline) {
        for var packet in waiting { av_packet_free(&packet) }
        (waiting, readEnd) = ([], nil)
        self.timeline = timeline
    }

    /// The next packet that is given; AVERROR(EAGAIN) for one that is left out, another AVERROR at the end and when
    /// reading fails. Waits as `av_read_frame` does.
    ///
    /// - Parameter raw: Reads instead of libavformat.
    func read(
        _ container: UnsafeMutablePointer<AVFormatContext>, raw: RawPictures? = nil,
        into packet: UnsafeMutablePointer<AVPacket>, _ use: (Int) -> Use
    ) -> Int32 {
        while true {
            if !waiting.isEmpty, let placement = timeline.next() {
                guard take(into: packet) else { continue }
                place(packet, placement, in: container)
                return 0
            }
            if let readEnd {
                self.readEnd = nil
                return readEnd
            }
            let result =
                raw?.read(container.pointee.pb, into: packet) ?? readOne(container, into: packet)
            if result == fh_averror_again { return result }
            guard result >= 0 else {
                readEnd = result
                timeline.end()
                continue
            }
            let index = Int(packet.pointee.stream_index)
            let use = use(index)
            guard use != .leftOut else {
                av_packet_unref(packet)
                return fh_averror_again
            }
            timeline.add(
                InputTimeline.Stamp(
                    packet.pointee, Self.timeBase(index, of: container),
                    isSound: container.pointee.streams[index]!.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_AUDIO
                ))
            guard waiting.isEmpty, let placement = timeline.next() else {
                guard keep(packet, use) else { return fh_averror_no_memory }
                continue
            }
            guard use == .given else {
                av_packet_unref(packet)
                continue
            }
            place(packet, placement, in: container)
            return 0
        }
    }

    private func keep(_ packet: UnsafeMutablePointer<AVPacket>, _ use: Use) -> Bool {
        defer { av_packet_unref(packet) }
        guard use == .given else {
            waiting.append(nil)
            return true
        }
        guard let kept = av_packet_clone(packet) else { return false }
        waiting.append(kept)
        return true
    }

    /// Takes the packet that waits longest; false where only its times were wanted.
    private func take(into packet: UnsafeMutablePointer<AVPacket>) -> Bool {
        var kept = waiting.removeFirst()
        guard let first = kept else { return false }
        av_packet_move_ref(packet, first)
        av_packet_free(&kept)
        return true
    }

    private static func timeBase(_ index: Int, of container: UnsafeMutablePointer<AVFormatContext>) -> TimeBase {
        let base = container.pointee.streams[index]!.pointee.time_base
        return base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : TimeBase(1, AV_TIME_BASE)
    }

    private func place(
        _ packet: UnsafeMutablePointer<AVPacket>, _ placement: InputTimeline.Placement,
        in container: UnsafeMutablePointer<AVFormatContext>
    ) {
        let base = Self.timeBase(Int(packet.pointee.stream_index), of: container)
        switch placement {
        case .shifted(let shift):
            guard shift != .zero else { return }
            let ticks = base.ticks(of: shift)
            func moved(_ tick: Int64) -> Int64 {
                tick != fh_av_no_pts && TrackTimes.isPossible(tick, base) ? tick.plus(ticks) : tick
            }
            packet.pointee.pts = moved(packet.pointee.pts)
            packet.pointee.dts = moved(packet.pointee.dts)
        case .replaced(let pts, let dts):
            packet.pointee.pts = pts.map { base.ticks(of: $0) } ?? fh_av_no_pts
            packet.pointee.dts = base.ticks(of: dts)
        }
    }
}

extension InputTimeline.Stamp {
    /// What a packet says of itself. Impossible times count as missing, and so do those of a packet that is hidden.
    init(_ packet: AVPacket, _ base: TimeBase, isSound: Bool = false) {
        // What an edit list hides lies over what is shown before and after it, so that its times tell nothing.
        let isHidden = packet.flags & AV_PKT_FLAG_DISCARD != 0
        func time(_ tick: Int64) -> MediaTime? {
            isHidden || tick == fh_av_no_pts ? nil : base.possibleTime(ofTicks: tick)
        }
        self.init(
            track: Int(packet.stream_index), pts: time(packet.pts), dts: time(packet.dts),
            duration: packet.duration > 0 ? base.possibleTime(ofTicks: packet.duration) ?? .zero : .zero,
            isSound: isSound)
    }
}
