import CAVFormat
import FrameCore

/// Reads the packets of one sound track as they are, cut to the part of the file whose pictures are shown, on the chain's time line.
///
/// Has the file open for itself. A packet across the begin of the part is given whole, and before it as many as a decoder needs.
final class FileAudioReader: AudioReader {
    private let file: MediaFile
    private let track: Int
    private let context: StageContext
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// In ticks of the track, by the file: what ends at `lower` or before is left out, as is what begins at `upper` or later.
    private let lower: Int64?
    private let upper: Int64?
    /// Taken off each tick to give the chain's.
    private let shift: Int64
    private var entry: FileEntry?
    private var following: Int64 = 0
    private var isOver = false

    /// [control thread]
    ///
    /// - Parameter track: From 0 among all tracks.
    init(path: String, track: Int, format: AudioTrackFormat, range: FileTimeRange, context: StageContext) throws {
        self.track = track
        self.context = context
        file = try MediaFile(path: path)
        guard track < file.trackCount, let packet = av_packet_alloc() else { throw FileFault.changed(path) }
        self.packet = packet
        file.giveOnly(track: track)
        let base = format.timeBase
        // Sound before the begin is decoded and not heard: what the codec asks for, and a packet that the first one overlaps.
        let early = MediaTime(
            seconds: Double(max(format.seekPreroll, format.samplesPerPacket)) / Double(max(format.sampleRate, 1)))
        lower = range.begin.map { base.ticks(of: $0 - early) }
        upper = range.end.map { base.ticks(of: $0) }
        shift = base.ticks(of: range.shift)
        if let lower {
            entry = FileEntry(lower, isFirst: true, origin: file.origin(track), timeBase: base)
            try go()
        }
    }

    deinit { av_packet_free(&packet) }

    /// [consumer's thread] The next packet; nil at the end of the part.
    func next() throws -> AudioPacket? {
        while !isOver {
            let result = file.read(into: packet)
            if result == fh_averror_again { continue }
            guard result >= 0 else {
                if entry?.isTooLate(nil) == true {
                    try goBack()
                    continue
                }
                isOver = true
                if result != fh_averror_eof { reportFault(result) }
                return nil
            }
            defer { av_packet_unref(packet) }
            guard let found = try take(packet!.pointee) else { continue }
            return found
        }
        return nil
    }

    private func take(_ packet: AVPacket) throws -> AudioPacket? {
        guard packet.stream_index == track else { return nil }
        let pts = packet.pts != fh_av_no_pts ? packet.pts : packet.dts != fh_av_no_pts ? packet.dts : following
        let dts = packet.dts != fh_av_no_pts ? packet.dts : pts
        if entry?.isTooLate(pts) == true {
            try goBack()
            return nil
        }
        entry = nil
        following = pts + packet.duration
        if let lower, following <= lower { return nil }
        if let upper, pts >= upper {
            isOver = true
            return nil
        }
        return AudioPacket(
            bytes: Array(UnsafeBufferPointer(start: packet.data, count: Int(packet.size))), pts: pts - shift, dts: dts - shift,
            duration: packet.duration)
    }

    private func goBack() throws {
        entry?.goBack()
        try go()
    }

    private func go() throws {
        guard entry?.place.map({ file.seek(to: $0, track: track) }) != true else { return }
        entry?.goToBegin()
        try file.reopen()
    }

    private func reportFault(_ code: Int32) {
        context.post(
            "file-incomplete", level: .warning,
            text: "the sound of '\(file.path)' could not be read to its end: \(LibavText.of(code))")
    }
}
