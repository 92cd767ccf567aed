// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// Finds out what of some tags a container gives back: writes a file of one packet for each track into memory, and reads it.
///
/// Which names, roles and chapters a container keeps is known to libavformat alone, and differs between its versions.
struct TagTrial {
    let container: Container
    let tags: RecordedTags
    private let written: TrackDescriptions
    /// Whether such a file can be written at all.
    private(set) var isWritten = false
    /// What did not come back, in words: `the tag 'make'`.
    private(set) var losses: [String] = []
    /// How many tags of the whole did not.
    private(set) var lostTagCount = 0

    /// - Parameters:
    ///   - pictures: The track of the pictures.
    ///   - count: How many tracks of sound there are.
    init(_ tags: RecordedTags, pictures: TrackDescriptions, sounds count: Int, in container: Container) {
        self.container = container
        self.tags = tags
        var tracks = pictures
        // Any sound serves; some could not be written without its first packet.
        let sound = AudioTrackFormat(
            codec: .aac, timeBase: TimeBase(1, 48_000), sampleRate: 48_000, channelCount: 2, samplesPerPacket: 1024,
            profile: 1, extradata: [0x11, 0x90])
        tracks.audio = Array(repeating: sound, count: count)
        tracks.hasMotion = false
        written = tracks
        guard let bytes = write(tracks) else { return }
        isWritten = true
        read(bytes)
    }

    private func write(_ tracks: TrackDescriptions) -> [UInt8]? {
        var context: UnsafeMutablePointer<AVFormatContext>?
        guard avformat_alloc_output_context2(&context, nil, container.rawValue, nil) >= 0, let context,
            let streams = try? tracks.addStreams(to: context, container), avio_open_dyn_buf(&context.pointee.pb) >= 0
        else {
            avformat_free_context(context)
            return nil
        }
        var settings: OpaquePointer?
        tags.set(in: context)
        tags.addChapters(to: context, origin: .zero)
        tags.set(&settings, container)
        context.pointee.strict_std_compliance = TrackDescriptions.compliance
        let isBegun = avformat_write_header(context, &settings) >= 0
        av_dict_free(&settings)
        if isBegun {
            for index in streams.indices { writePacket(to: context, index) }
            av_write_trailer(context)
        }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = avio_close_dyn_buf(context.pointee.pb, &bytes)
        defer {
            av_free(bytes)
            avformat_free_context(context)
        }
        return isBegun ? Array(UnsafeBufferPointer(start: bytes, count: Int(max(count, 0)))) : nil
    }

    private func writePacket(to context: UnsafeMutablePointer<AVFormatContext>, _ index: Int) {
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        let unit: [UInt8] = index == 0 ? [0, 0, 0, 1, 0x65, 0x88, 0x80, 0x10] : [0x21, 0x10, 0x04, 0x60]
        guard let packet, av_new_packet(packet, Int32(unit.count)) >= 0 else { return }
        packet.pointee.data.update(from: unit, count: unit.count)
        packet.pointee.stream_index = Int32(index)
        (packet.pointee.pts, packet.pointee.dts) = (0, 0)
        packet.pointee.flags = AV_PKT_FLAG_KEY
        let base = TimeBase(context.pointee.streams[index]!.pointee.time_base)
        packet.pointee.duration = base.ticks(of: tags.chapters.last?.end ?? MediaTime(seconds: 1))
        av_write_frame(context, packet)
    }

    // MARK: Reading back

    private mutating func read(_ bytes: [UInt8]) {
        let memory = MemoryFile(bytes)
        var io = memory.makeIO()
        guard io != nil else { return }
        var reader = avformat_alloc_context()
        reader?.pointee.pb = io
        let form = av_find_input_format(container == .mkv ? "matroska" : "mov")
        let opened = avformat_open_input(&reader, nil, form, nil)
        defer {
            avformat_close_input(&reader)
            OutputFile.freeIO(&io)
            withExtendedLifetime(memory) {}
        }
        guard opened >= 0, let reader else { return }
        losses = lostTags(reader) + lostOfTracks(reader) + lostChapters(reader)
    }

    private static func text(_ tags: OpaquePointer?, _ key: String) -> String? {
        av_dict_get(tags, key, nil, 0).map { String(cString: $0.pointee.value) }
    }

    private mutating func lostTags(_ reader: UnsafeMutablePointer<AVFormatContext>) -> [String] {
        let lost = tags.tags.filter { !Self.isKept($0, Self.text(reader.pointee.metadata, $0.key)) }
        lostTagCount = lost.count
        guard !lost.isEmpty else { return [] }
        return ["the \(lost.count == 1 ? "tag" : "tags") \(Self.list(lost.map { "'\($0.key)'" }))"]
    }

    /// Whether a text came back, perhaps in the container's own precision.
    private static func isKept(_ tag: MediaTags.Tag, _ found: String?) -> Bool {
        guard let found else { return false }
        switch tag.key.lowercased() {
        case "creation_time": return found.prefix(19) == tag.value.prefix(19)
        case "location": return places(found) == places(tag.value)
        case "language": return Language.bibliographic(found) == Language.bibliographic(tag.value)
        default: return found == tag.value
        }
    }

    /// Latitude and longitude of an ISO 6709 text, in thousandths of a degree.
    private static func places(_ text: String) -> [Int] {
        var numbers: [String] = []
        for character in text {
            if character == "+" || character == "-" { numbers.append("") }
            guard !numbers.isEmpty, character != "/" else { continue }
            numbers[numbers.count - 1].append(character)
        }
        return numbers.prefix(2).map { Double($0).map { Int(($0 * 1000).rounded()) } ?? 0 }
    }

    private func lostOfTracks(_ reader: UnsafeMutablePointer<AVFormatContext>) -> [String] {
        let tracks =
            [(written.pictures == nil ? "the sound" : "the pictures", tags.pictures)]
            + (tags.carried + tags.sounds).enumerated().map { ("sound \($0 + 1)", $1) }
        var lost: [String] = []
        if let hdr = written.pictureTags.hdr, written.pictures?.color.isHDR == true, reader.pointee.nb_streams > 0 {
            var found = fh_av_hdr()
            fh_av_take_stream_hdr(&found, reader.pointee.streams[0])
            let isKept =
                (found.has_display != 0) == (hdr.masteringDisplay != nil)
                && (found.has_light != 0) == (hdr.contentLight != nil)
            if !isKept { lost.append("the light levels of the pictures in its head (HDR10; the pictures keep theirs)") }
        }
        for (index, (name, track)) in tracks.enumerated() where index < Int(reader.pointee.nb_streams) {
            let stream = reader.pointee.streams[index]!.pointee
            for tag in track.tags where tag.key.lowercased() != "handler_name" {
                let isHandler =
                    tag.key.lowercased() == "title" && Self.text(stream.metadata, "handler_name") == tag.value
                guard !isHandler, !Self.isKept(tag, Self.text(stream.metadata, tag.key)) else { continue }
                lost.append("the tag '\(tag.key)' of \(name)")
            }
            let roles = (track.roles ?? []).filter { stream.disposition & av_disposition_from_string($0) == 0 }
            if !roles.isEmpty {
                lost.append(
                    "the \(roles.count == 1 ? "role" : "roles") \(Self.list(roles.map { "'\($0)'" })) of \(name)")
            }
        }
        return lost
    }

    private func lostChapters(_ reader: UnsafeMutablePointer<AVFormatContext>) -> [String] {
        let found = (0..<Int(reader.pointee.nb_chapters)).map { reader.pointee.chapters[$0]!.pointee }
        var keys: [String] = []
        var missing = 0
        for (index, chapter) in tags.chapters.enumerated() {
            guard index < found.count else {
                missing += 1
                continue
            }
            for tag in chapter.tags where Self.text(found[index].metadata, tag.key) != tag.value {
                if !keys.contains(tag.key) { keys.append(tag.key) }
            }
        }
        return (missing > 0 ? ["\(missing) of \(tags.chapters.count) chapters"] : [])
            + (keys.isEmpty ? [] : ["\(Self.list(keys.map { "'\($0)'" })) of chapters"])
    }

    /// `a, b and c`; of many only the first.
    static func list(_ words: [String]) -> String {
        guard words.count > 1 else { return words.first ?? "" }
        guard words.count <= 8 else { return words.prefix(7).joined(separator: ", ") + " and \(words.count - 7) more" }
        return words.dropLast().joined(separator: ", ") + " and " + words.last!
    }
}

/// Bytes that libavformat reads like a file.
private final class MemoryFile {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// A context that reads here; this object must outlive it.
    func makeIO() -> UnsafeMutablePointer<AVIOContext>? {
        let size: Int32 = 4096
        guard let buffer = av_malloc(Int(size)) else { return nil }
        return avio_alloc_context(
            buffer.assumingMemoryBound(to: UInt8.self), size, 0, Unmanaged.passUnretained(self).toOpaque(),
            { file, target, count in
                Unmanaged<MemoryFile>.fromOpaque(file!).takeUnretainedValue().read(target!, Int(count))
            }, nil,
            { file, target, whence in
                Unmanaged<MemoryFile>.fromOpaque(file!).takeUnretainedValue().seek(target, whence)
            })
    }

    private func read(_ target: UnsafeMutablePointer<UInt8>, _ most: Int) -> Int32 {
        let count = min(most, bytes.count - offset)
        guard count > 0 else { return fh_averror_eof }
        bytes.withUnsafeBufferPointer { target.update(from: $0.baseAddress! + offset, count: count) }
        offset += count
        return Int32(count)
    }

    private func seek(_ target: Int64, _ whence: Int32) -> Int64 {
        switch whence & ~AVSEEK_FORCE {
        case AVSEEK_SIZE: return Int64(bytes.count)
        case SEEK_CUR: offset += Int(target)
        case SEEK_END: offset = bytes.count + Int(target)
        default: offset = Int(target)
        }
        offset = min(max(offset, 0), bytes.count)
        return Int64(offset)
    }
}
