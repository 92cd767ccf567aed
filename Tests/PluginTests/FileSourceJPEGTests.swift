// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CTurboJPEG
import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Stills

/// Motion JPEG by libjpeg-turbo, and what is left to libavcodec.
@Suite struct FileSourceJPEGTests {
    private static let size = PictureSize(64, 48)

    /// A picture of one grey, as libjpeg-turbo writes it.
    private static func jpeg(_ gray: UInt8, _ sampling: TJSAMP = TJSAMP_420, height: Int32 = 48) -> [UInt8] {
        let handle = tjInitCompress()
        defer { tjDestroy(handle) }
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let pixels = [UInt8](repeating: gray, count: 64 * Int(height) * 3)
        tjCompress2(
            handle, pixels, 64, 0, height, Int32(TJPF_RGB.rawValue), &bytes, &count, Int32(sampling.rawValue), 95, 0)
        defer { tjFree(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    /// Without the segments of one marker.
    private static func without(_ marker: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        var (rest, place) = (Array(bytes.prefix(2)), 2)
        while bytes[place + 1] != 0xDA {
            let length = 2 + Int(bytes[place + 2]) << 8 + Int(bytes[place + 3])
            if bytes[place + 1] != marker { rest += bytes[place..<place + length] }
            place += length
        }
        return rest + bytes[place...]
    }

    /// With a segment behind its first marker.
    private static func with(_ marker: UInt8, _ body: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        [0xFF, 0xD8, 0xFF, marker, UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 255)] + body
            + bytes.dropFirst(2)
    }

    private struct Decoded: Equatable {
        var size: PictureSize
        var gray: UInt8
        var tick: Int64
        var isDamaged = false
        var orientation: Orientation?
    }

    /// What a decoder gives for packets; how many it refuses.
    private static func decode(_ packets: [[UInt8]], threads: Int = 1) throws -> (pictures: [Decoded], refused: Int) {
        var parameters = avcodec_parameters_alloc()
        defer { avcodec_parameters_free(&parameters) }
        parameters!.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters!.pointee.codec_id = AV_CODEC_ID_MJPEG
        (parameters!.pointee.width, parameters!.pointee.height) = (64, 48)
        parameters!.pointee.format = AV_PIX_FMT_YUVJ420P.rawValue
        let decoder = try PictureDecoder(
            parameters!, timeBase: AVRational(num: 1, den: 25), of: "a test", threads: threads)
        var frame = av_frame_alloc()
        var packet = av_packet_alloc()
        defer {
            av_frame_free(&frame)
            av_packet_free(&packet)
        }
        let picture = DecodedPicture(frame: frame!)
        var found: [Decoded] = []
        var refused = 0
        func takeAll() -> Bool {
            while true {
                switch decoder.receive(into: picture.frame) {
                case .picture:
                    let data = picture.frame.pointee.data.0!
                    let middle = picture.frame.pointee.height / 2 * picture.frame.pointee.linesize.0 + 32
                    found.append(
                        Decoded(
                            size: PictureSize(picture.width, picture.height), gray: data[Int(middle)],
                            tick: picture.givenTick, isDamaged: picture.isDamaged,
                            orientation: picture.orientation?.value))
                case .hungry: return false
                case .damaged: refused += 1
                case .ended: return true
                }
            }
        }
        for (number, bytes) in packets.enumerated() {
            #expect(av_new_packet(packet, Int32(bytes.count)) == 0)
            packet!.pointee.data.update(from: bytes, count: bytes.count)
            packet!.pointee.pts = Int64(number)
            if try !decoder.send(packet) { refused += 1 }
            av_packet_unref(packet)
            _ = takeAll()
        }
        _ = try decoder.send(nil)
        #expect(takeAll())
        return (found, refused)
    }

    private static func isUsual(_ bytes: [UInt8]) -> Bool? { bytes.withUnsafeBytes { JPEGOutline($0)?.isUsual } }

    @Test(arguments: [1, 3]) func givesEachPictureInOrder(threads: Int) throws {
        let packets = (0..<40).map { Self.jpeg(UInt8($0 * 6), $0 % 2 == 0 ? TJSAMP_420 : TJSAMP_422) }
        #expect(packets.allSatisfy { Self.isUsual($0) == true })
        let (pictures, refused) = try Self.decode(packets, threads: threads)
        #expect(refused == 0)
        #expect(pictures.map(\.tick) == (0..<40).map(Int64.init))
        #expect(
            pictures.allSatisfy { abs(Int($0.gray) - Int($0.tick) * 6) <= 1 && $0.size == Self.size }, "\(pictures)")
    }

    /// The rest of a stream whose kind changes comes from libavcodec, in order.
    @Test(arguments: [1, 3]) func leavesOddPicturesToLibavcodec(threads: Int) throws {
        let exif: [UInt8] =
            Array("Exif\0\0MM\0*\0\0\0\u{8}".utf8) + [0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        let odd = [
            Self.with(0xE1, exif, Self.jpeg(100)), Self.jpeg(110, TJSAMP_444), Self.jpeg(120, TJSAMP_GRAY),
            Self.jpeg(130, TJSAMP_440),
        ]
        #expect(odd.allSatisfy { Self.isUsual($0) == false })
        for (number, bytes) in odd.enumerated() {
            let (pictures, _) = try Self.decode(
                [Self.jpeg(40), Self.jpeg(50), bytes, Self.jpeg(60)], threads: threads)
            #expect(pictures.map(\.tick) == [0, 1, 2, 3], "\(number)")
            #expect(pictures.map { Int($0.gray) }.elementsEqual([40, 50, 100 + number * 10, 60]) { abs($0 - $1) <= 1 })
            #expect((pictures.dropFirst(2).first?.orientation != nil) == (number == 0))
        }
    }

    /// One picture of four says by Exif that it is turned; the others say nothing.
    @Test func turnsOnlyThePictureThatSaysSo() throws {
        let folder = try ScratchFolder()
        let exif: [UInt8] =
            Array("Exif\0\0MM\0*\0\0\0\u{8}".utf8) + [0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        let stream = Self.jpeg(40) + Self.with(0xE1, exif, Self.jpeg(50)) + Self.jpeg(60) + Self.jpeg(70)
        try Data(stream).write(to: URL(fileURLWithPath: folder.file("a.mjpg")))
        let (_, pictures, events) = try ClipMaker.play(folder.file("a.mjpg"))
        #expect(pictures.map(\.orientation) == [.up, .right, .up, .up])
        #expect(events.filter { $0.name == "orientation-changed" }.count == 2)
    }

    @Test func joinsTwoFieldsOfAPacket() throws {
        let fields = Self.jpeg(90, height: 24) + Self.jpeg(90, height: 24)
        let (pictures, _) = try Self.decode([fields, fields])
        #expect(pictures.map(\.size) == [Self.size, Self.size])
    }

    @Test func putsInTheTablesThatAreLeftOut() throws {
        let (pictures, refused) = try Self.decode([Self.without(0xC4, Self.jpeg(70))])
        #expect(refused == 0 && pictures.map { abs(Int($0.gray) - 70) <= 1 } == [true])
    }

    @Test func marksWhatIsCutShortAndRefusesWhatIsNoPicture() throws {
        let whole = Self.jpeg(200)
        let noise = Array(whole.prefix(40)) + [UInt8](repeating: 0, count: 300)
        let (pictures, refused) = try Self.decode([whole, Array(whole.dropLast(12)), noise, whole])
        #expect(pictures.map(\.isDamaged) == [false, true, false])
        #expect(pictures.map(\.tick) == [0, 1, 3])
        #expect(refused == 1)
    }

    @Test func readsNothingBehindTheBytes() {
        let whole = Self.jpeg(10)
        for count in 0..<whole.count {
            let cut = Array(whole.prefix(count))
            _ = Self.isUsual(cut)
        }
        #expect(Self.isUsual([]) == nil && Self.isUsual([0xFF, 0xD8, 0xFF, 0xE0, 0xFF]) == nil)
    }

    /// Colours are those of libavcodec, give or take what two ways of rounding differ by.
    @Test(.needsFFmpeg, arguments: ["yuvj420p", "yuvj422p"]) func looksAsByLibavcodec(pixels: String) throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("198x107", count: 12), "-pix_fmt", pixels, "-c:v", "mjpeg", "-q:v",
            "3", folder.file("a.avi"))
        let played = try ClipMaker.play(folder.file("a.avi"))
        let said = played.events.filter { $0.name != "decoded-in-place" }.map(\.text)
        #expect(said == (pixels == "yuvj422p" ? ["The pictures are yuvj422p and are converted to i420."] : []))
        #expect(FileSourceLoansTests.count(played.events, "inPlace") == 12)
        try ClipMaker.ffmpeg(
            "-i", folder.file("a.avi"), "-pix_fmt", "yuvj420p", "-c:v", "rawvideo", folder.file("raw.nut"))
        func samples(_ path: String) throws -> [[UInt8]] {
            let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
            var pictures: [[UInt8]] = []
            while try source.produce() == .more {
                guard let frame = source.takeFrame() else { continue }
                var bytes: [UInt8] = []
                for index in 0..<frame.planeCount {
                    frame.withPlane(index) { plane in for y in 0..<plane.height { bytes += plane.row(y) } }
                }
                pictures.append(bytes)
            }
            try source.stop()
            return pictures
        }
        let (ours, theirs) = (try samples(folder.file("a.avi")), try samples(folder.file("raw.nut")))
        #expect(ours.count == 12 && theirs.count == 12)
        for (one, other) in zip(ours, theirs) {
            let differences = zip(one, other).map { abs(Int($0) - Int($1)) }
            let mean = Double(differences.reduce(0, +)) / Double(differences.count)
            // ffmpeg's own scaler may place chroma otherwise.
            #expect(
                one.count == other.count && mean < 0.6 && differences.max()! <= (pixels == "yuvj420p" ? 3 : 40),
                "\(mean), \(differences.max()!)")
        }
    }
}
