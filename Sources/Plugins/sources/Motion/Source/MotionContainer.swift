// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The motion in an MP4 or MOV file, demuxed by libavformat. The only place that calls it.
///
/// Used by one thread at a time. Time 0 is that of the first picture, where the film has pictures.
final class MotionContainer: MotionReader {
    private enum Format { case gpmf, camm }

    private let path: String
    /// Keeps recorders from removing or replacing the file while it is read.
    private let held: HeldFile
    private var container: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var format = Format.camm
    private var track = 0
    private var timeBase = TimeBase.nanoseconds
    /// The time of the first picture.
    private var origin = MediaTime.zero
    private var merge = SensorMerge(patience: 1_000_000_000)
    private var packets = 0
    /// How long the last payload of GPMF lasted.
    private var lastDuration = MediaTime(seconds: 1)
    private(set) var axes: AxisMap?
    private(set) var duration: MediaTime?

    let contents: MotionSample.Contents = []

    /// [control thread]
    init(_ held: HeldFile, path: String) throws {
        self.path = path
        self.held = held
        fh_av_log_begin()
        let opened = open()
        let said = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            fh_av_log_end(buffer.baseAddress!, buffer.count)
            return String(cString: buffer.baseAddress!)
        }
        guard opened >= 0, container != nil else { throw Self.fault(opened, path, said) }
        try chooseTrack()
        packet = av_packet_alloc()
        guard packet != nil else {
            throw FrameHostError(
                .exhausted, what: "there is not enough memory to read '\(path)'",
                remedy: "Free some memory, and start the chain again.", option: "path")
        }
    }

    deinit {
        av_packet_free(&packet)
        avformat_close_input(&container)
    }

    private func open() -> Int32 {
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        av_dict_set(&settings, "protocol_whitelist", "file", 0)
        // By its name, so that no content leads to another file or to the network.
        let opened = avformat_open_input(&container, "file:" + path, av_find_input_format("mov"), &settings)
        // Finds the time of the first picture.
        return opened < 0 ? opened : avformat_find_stream_info(container, nil)
    }

    private static func fault(_ code: Int32, _ path: String, _ said: String) -> FrameHostError {
        let errno = code == fh_averror_invalid_data ? 0 : fh_averror_errno(code)
        return errno == 0 ? MotionText.notMedia(path, cause: said) : MotionText.unreadable(path, errno)
    }

    private func stream(_ index: Int) -> UnsafeMutablePointer<AVStream> { container!.pointee.streams[index]! }

    private func chooseTrack() throws {
        let count = Int(container!.pointee.nb_streams)
        let tags: [UInt32: Format] = [Self.tag("gpmd"): .gpmf, Self.tag("camm"): .camm]
        let found = (0..<count).first { tags[stream($0).pointee.codecpar.pointee.codec_tag] != nil }
        guard let found, let format = tags[stream(found).pointee.codecpar.pointee.codec_tag] else {
            throw MotionText.noTrack(path, tracks: (0..<count).map { Self.title(stream($0).pointee.codecpar.pointee) })
        }
        (track, self.format) = (found, format)
        guard let base = Self.timeBase(stream(found)) else {
            throw MotionText.notMedia(path, cause: "the track of motion has no time base")
        }
        timeBase = base
        let video = (0..<count).first { stream($0).pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO }
        if let video, stream(video).pointee.start_time != fh_av_no_pts {
            let start = stream(video).pointee.start_time
            origin = Self.timeBase(stream(video))?.possibleTime(ofTicks: start) ?? .zero
        }
        let ticks = stream(found).pointee.duration
        if ticks > 0, ticks != fh_av_no_pts { duration = base.possibleTime(ofTicks: ticks) }
        for index in 0..<count { stream(index).pointee.discard = index == found ? AVDISCARD_DEFAULT : AVDISCARD_ALL }
    }

    private static func timeBase(_ stream: UnsafeMutablePointer<AVStream>) -> TimeBase? {
        let base = stream.pointee.time_base
        return base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : nil
    }

    private static func tag(_ text: StaticString) -> UInt32 {
        text.withUTF8Buffer { letters in
            letters.reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
    }

    /// `video h264`.
    private static func title(_ parameters: AVCodecParameters) -> String {
        let kind = av_get_media_type_string(parameters.codec_type).map { String(cString: $0) } ?? "unknown"
        return "\(kind) \(String(cString: avcodec_get_name(parameters.codec_id)))"
    }

    // MARK: Packets

    func read(into samples: inout [MotionSample], given: Int) throws -> Bool {
        let before = given - samples.count
        fh_av_log_begin()
        let result = av_read_frame(container, packet)
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { fh_av_log_end($0.baseAddress!, $0.count) }
        guard result >= 0, let packet else { return try end(result, &samples, before) }
        defer { av_packet_unref(packet) }
        guard packet.pointee.stream_index == Int32(track) else { return true }
        guard packet.pointee.flags & AV_PKT_FLAG_CORRUPT == 0 else { return try end(fh_averror_eof, &samples, before) }
        packets += 1
        // A packet without a time, or with an impossible one, is left out.
        let ticks = packet.pointee.pts == fh_av_no_pts ? packet.pointee.dts : packet.pointee.pts
        guard let place = timeBase.possibleTime(ofTicks: ticks) else { return true }
        let time = place - origin
        let bytes = UnsafeBufferPointer(start: packet.pointee.data, count: max(Int(packet.pointee.size), 0))
        do throws(MotionFault) {
            switch format {
            case .camm:
                if let sample = try CAMM.sample(in: bytes.span, at: time) { merge.add(sample, into: &samples) }
            case .gpmf:
                let length = timeBase.possibleTime(ofTicks: packet.pointee.duration) ?? .zero
                if length > .zero { lastDuration = length }
                try take(bytes.span, at: time, &samples)
            }
        } catch {
            merge.end(into: &samples)
            throw MotionText.damagedPacket(
                path, byte: packet.pointee.pos, at: time, error, given: before + samples.count)
        }
        return true
    }

    /// The values of a payload are spread evenly over its duration.
    private func take(_ bytes: Span<UInt8>, at time: MediaTime, _ samples: inout [MotionSample]) throws(MotionFault) {
        var payload = GPMF.Payload()
        var fault: MotionFault?
        do throws(MotionFault) { try GPMF.read(bytes, into: &payload) } catch { fault = error }
        if axes == nil, !payload.rotationRates.isEmpty || !payload.accelerations.isEmpty { axes = payload.axes }
        func place(_ index: Int, of count: Int) -> MediaTime {
            time + MediaTime(seconds: lastDuration.seconds * Double(index) / Double(count))
        }
        // In the order of their time, so that none waits for all of the others.
        var (gyro, accel) = (0, 0)
        let (rates, accelerations) = (payload.rotationRates, payload.accelerations)
        while gyro < rates.count || accel < accelerations.count {
            let isGyro =
                accel == accelerations.count
                || gyro < rates.count && place(gyro, of: rates.count) <= place(accel, of: accelerations.count)
            var sample = MotionSample(
                time: isGyro ? place(gyro, of: rates.count) : place(accel, of: accelerations.count))
            sample.contents = isGyro ? .rotationRate : .acceleration
            if isGyro {
                sample.rotationRate = rates[gyro]
                gyro += 1
            } else {
                sample.acceleration = accelerations[accel]
                accel += 1
            }
            merge.add(sample, into: &samples)
        }
        if let fault { throw fault }
    }

    /// - Parameter before: How many samples were passed on before `samples`.
    private func end(_ result: Int32, _ samples: inout [MotionSample], _ before: Int) throws -> Bool {
        merge.end(into: &samples)
        var indexed: Int32 = 0
        _ = fh_av_largest_indexed(stream(track), &indexed)
        // A packet that lies beyond the end of the file is invalid data.
        if packets < Int(indexed), result == fh_averror_eof || result == fh_averror_invalid_data {
            throw MotionText.cut(path, packets: packets, of: Int(indexed), given: before + samples.count)
        }
        guard result == fh_averror_eof else {
            let errno = result == fh_averror_invalid_data ? 0 : fh_averror_errno(result)
            if errno != 0 { throw MotionText.unreadable(path, errno) }
            let cause = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
                av_strerror(result, buffer.baseAddress!, buffer.count)
                return String(cString: buffer.baseAddress!)
            }
            throw MotionText.damaged(path, cause: cause, given: before + samples.count)
        }
        return false
    }
}
