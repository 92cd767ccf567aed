// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// A sound track of made-up packets.
final class MadeUpSound: AudioOrigin {
    let tracks: [AudioTrackFormat]
    private let packets: [[AudioPacket]]
    nonisolated(unsafe) var hasGivenAllPictures = false

    init(_ tracks: [(format: AudioTrackFormat, packets: [AudioPacket])]) {
        self.tracks = tracks.map(\.format)
        packets = tracks.map(\.packets)
    }

    func open(track: Int) throws -> any AudioReader { Reader(packets[track]) }

    final class Reader: AudioReader {
        private var rest: ArraySlice<AudioPacket>
        init(_ packets: [AudioPacket]) { rest = packets[...] }
        func next() throws -> AudioPacket? {
            if rest.first?.bytes == [] { throw FrameHostError(.unavailable, what: "the file is damaged here") }
            return rest.popFirst()
        }
    }

    /// AAC-LC, 48 kHz, stereo: packets of 1024 samples between two times in seconds.
    static func aac(from start: Double, to end: Double, mark: UInt8 = 1) -> (
        format: AudioTrackFormat, packets: [AudioPacket]
    ) {
        let format = AudioTrackFormat(
            codec: Codec(rawValue: "aac"), timeBase: TimeBase(1, 48_000), sampleRate: 48_000, channelCount: 2,
            channelMask: 3,
            samplesPerPacket: 1024,
            extradata: [0x11, 0x90], language: "deu")
        let first = Int64(start * 48_000)
        let packets = (0..<Int64((end - start) * 48_000 / 1024)).map { number in
            let bytes =
                [mark] + (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
                + [UInt8](repeating: 0x55, count: 20)
            return AudioPacket(bytes: bytes, pts: first + number * 1024, dts: first + number * 1024, duration: 1024)
        }
        return (format, packets)
    }
}

@Suite struct RecorderSoundTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    private func record(
        _ units: [RecorderStreams.Unit], _ sound: MadeUpSound?, _ options: String = "", ending: String = "mp4",
        path: String = "a",
        at commands: [Int: String] = [:]
    ) throws -> [Event] {
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("\(path).\(ending)"))", "audio": "copy"\#(options) }"#,
            RecorderStreams.format(), audio: sound)
        for (number, unit) in units.enumerated() {
            if let command = commands[number] { try recorder.command(command) }
            try recorder.send(unit)
        }
        try recorder.finish()
        return recorder.takeEvents()
    }

    /// Sound of one file, in seconds on its own time line.
    private func sound(_ name: String, track: Int = 1) throws -> [(seconds: Double, bytes: [UInt8])] {
        let (packets, ticks) = try RecorderStreams.packets(of: folder.file(name))
        return packets.filter { $0.track == track }.map { (ticks[track].time(ofTicks: $0.pts).seconds, $0.bytes) }
    }

    @Test(arguments: ["mp4", "mov", "mkv"], ["never", "always"]) func carriesPacketsUntouched(
        ending: String, finalize: String
    ) throws {
        let given = MadeUpSound.aac(from: 0, to: 5)
        let units = RecorderStreams.steady(100) { $0 % 25 == 0 }
        let events = try record(units, MadeUpSound([given]), #", "finalize": "\#(finalize)""#, ending: ending)
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let got = try sound("a.\(ending)")
        // Four seconds of pictures: the sound that begins in them.
        let wanted = given.packets.filter { Double($0.pts) / 48_000 < 4 }
        #expect(got.map(\.bytes) == wanted.map(\.bytes))
        let tolerance = ending == "mkv" ? 0.00051 : 0.000001
        #expect(zip(got, wanted).allSatisfy { abs($0.seconds - Double($1.pts) / 48_000) < tolerance })
        #expect(
            try RecorderStreams.packets(of: folder.file("a.\(ending)")).packets.filter { $0.track == 0 }.count == 100)
        let file = try RecordingReader(folder.file("a.\(ending)"))
        #expect(file.stream(1).pointee.codecpar.pointee.sample_rate == 48_000)
    }

    @Test(arguments: ["mp4", "mkv"]) func putsEachPacketIntoTheSegmentOfItsTime(ending: String) throws {
        let given = MadeUpSound.aac(from: 0, to: 10)
        let units = RecorderStreams.steady(200) { $0 % 25 == 0 }
        _ = try record(units, MadeUpSound([given]), #", "segmentSeconds": 2"#, ending: ending)
        var bytes: [[UInt8]] = []
        for number in 1...4 {
            let got = try sound("a-000\(number).\(ending)")
            #expect(got.allSatisfy { $0.seconds >= 0 && $0.seconds < 2 }, "file \(number)")
            bytes += got.map(\.bytes)
        }
        #expect(bytes == given.packets.filter { Double($0.pts) / 48_000 < 8 }.map(\.bytes))
    }

    /// A file with its index in front has no times for samples of G.711 or PCM: they are put one behind the other, and stay
    /// beside the pictures.
    @Test(arguments: [("pcm_alaw", 1, 0xD5), ("pcm_mulaw", 1, 0xFF), ("pcm_s16le", 2, 0)])
    func putsSamplesOneBehindTheOther(codec: String, sampleBytes: Int, silence: UInt8) throws {
        var given = MadeUpSound.aac(from: 0, to: 1)
        given.format.codec = Codec(rawValue: codec)
        (given.format.timeBase, given.format.sampleRate) = (TimeBase(1, 8000), 8000)
        (given.format.channelCount, given.format.channelMask) = (1, 4)
        (given.format.samplesPerPacket, given.format.extradata) = (0, [])
        // Jitter of 5 ms; from packet 50 on 100 ms earlier, from packet 100 on 500 ms later. It begins before the pictures.
        given.packets = (0..<150).map { number in
            let step = number < 50 ? 0 : number < 100 ? -800 : 3200
            let place = Int64(number * 160 - 62 + number % 3 * 40 + step)
            return AudioPacket(
                bytes: [UInt8](repeating: UInt8(number + 1), count: 160 * sampleBytes), pts: place, dts: place,
                duration: 160)
        }
        let events = try record(RecorderStreams.steady(100) { $0 % 25 == 0 }, MadeUpSound([given]), ending: "mov")
        #expect(events.last?.name == "recording-finalised", "\(events.map(\.text))")
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let fitted = try #require(events.first { $0.name == "sound-fitted" }?.text)
        #expect(fitted.contains("s of sound were left out, which lay over") && fitted.contains("s of silence were put"))
        var samples: [UInt8] = []
        let got = try sound("a.mov")
        for packet in got {
            samples += stride(from: 0, to: packet.bytes.count, by: sampleBytes).map { packet.bytes[$0] }
        }
        let begin = try #require(got.first?.seconds) * 8000
        for (mark, packet) in zip(1..., given.packets) where packet.pts >= 0 && packet.pts < 32_000 {
            // Of what was left out the end is there.
            let last = samples.lastIndex(of: UInt8(mark)).map { Double($0 + 1 - 160) + begin }
            if let last { #expect(abs(last - Double(packet.pts)) <= 321, "packet \(mark)") }
        }
        #expect(Set(samples).isSuperset(of: (1...50).map { UInt8($0) }) && samples.filter { $0 == 70 }.count == 160)
        let silent = samples.filter { $0 == silence }.count
        #expect((3600...4400).contains(silent), "\(silent)")
    }

    /// What a decoder needs before the first sample that is heard has a time below 0.
    @Test(arguments: ["never", "always"]) func keepsTheDecodersStart(finalize: String) throws {
        var given = MadeUpSound.aac(from: 0, to: 3)
        given.format.initialPadding = 1024
        given.packets = given.packets.map {
            AudioPacket(bytes: $0.bytes, pts: $0.pts - 1024, dts: $0.dts - 1024, duration: 1024)
        }
        let events = try record(
            RecorderStreams.steady(50) { $0 == 0 }, MadeUpSound([given]), #", "finalize": "\#(finalize)""#)
        #expect(
            events.last?.name == (finalize == "never" ? "recording-did-stop" : "recording-finalised"),
            "\(events.last?.text ?? "")")
        let got = try sound("a.mp4")
        #expect(abs(got[0].seconds + 1024.0 / 48_000) < 1e-6)
        #expect(got[0].bytes == given.packets[0].bytes)
    }

    /// Matroska has no edit list: the packet that a decoder needs before the first sound stays before 0, whether the
    /// origin says how much of it nobody hears (an encoder) or not (MP4).
    @Test(arguments: [0, 1024], [341, 1024]) func keepsTheDecodersStartInMatroska(padding: Int, early: Int64) throws {
        var given = MadeUpSound.aac(from: 0, to: 3)
        given.format.initialPadding = padding
        given.packets = given.packets.map {
            AudioPacket(bytes: $0.bytes, pts: $0.pts - early, dts: $0.dts - early, duration: 1024)
        }
        _ = try record(RecorderStreams.steady(50) { $0 == 0 }, MadeUpSound([given]), ending: "mkv")
        let got = try sound("a.mkv")
        let wanted = given.packets.filter { Double($0.pts) / 48_000 < 2 }
        #expect(got.map(\.bytes) == wanted.map(\.bytes))
        // Readers know a time below 0 by that of the packet after it.
        #expect(zip(got, wanted).dropFirst().allSatisfy { abs($0.seconds - Double($1.pts) / 48_000) < 0.00051 })
    }

    /// Opus from WebM, whose times are whole milliseconds, and from MP4, whose times are samples.
    @Test(arguments: ["mkv", "mp4"], [1000, 48_000] as [Int32]) func carriesOpusWithItsDelay(
        ending: String, ticks: Int32
    )
        throws
    {
        let base = TimeBase(1, ticks)
        let head = Array("OpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]
        let format = AudioTrackFormat(
            codec: .opus, timeBase: base, sampleRate: 48_000, channelCount: 2, channelMask: 3, samplesPerPacket: 960,
            initialPadding: 312, seekPreroll: 3840, extradata: head)
        let packets = (0..<100).map { number in
            // As libavformat gives them: 0 - 7, 21 - 7, 41 - 7.
            let pts =
                ticks == 1000 ? (number == 0 ? -7 : Int64(number) * 20 - 6) : Int64(number) * 960 - 312
            return AudioPacket(
                bytes: [0xFC, UInt8(number), 0xFE], pts: pts, dts: pts, duration: Int64(ticks) / 50)
        }
        let events = try record(
            RecorderStreams.steady(75) { $0 % 25 == 0 }, MadeUpSound([(format, packets)]), ending: ending)
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let got = try sound("a.\(ending)")
        #expect(got.map(\.bytes) == packets.map(\.bytes))
        let wanted = packets.map { base.time(ofTicks: $0.pts).seconds }
        let most = zip(got, wanted).map { abs($0.seconds - $1) }.max() ?? 1
        #expect(most < 0.00051, "\(most)")
    }

    /// Sound of which a container would lose what its decoders must know.
    @Test(arguments: ["adpcm_ms", "adpcm_ima_wav", "wmav2"]) func refusesBlocksOfUnknownSize(codec: String) {
        var format = AudioTrackFormat(
            codec: Codec(rawValue: codec), timeBase: TimeBase(1, 8000), sampleRate: 8000, channelCount: 1)
        #expect(
            TrackDescriptions.obstacle(to: format, in: .mkv)
                == "the sound (\(codec)) does not say how large its blocks are, so nobody could play a copy")
        format.blockAlign = 256
        #expect(TrackDescriptions.obstacle(to: format, in: .mkv) == nil)
        #expect(TrackDescriptions.obstacle(to: format, in: .mp4) != nil)
    }

    /// Sound that begins late, early or not at all; the header does not wait for it.
    @Test(arguments: [0.5, 3.0, 7.0]) func carriesSoundThatBeginsLate(start: Double) throws {
        let given = MadeUpSound.aac(from: start, to: 9)
        _ = try record(RecorderStreams.steady(200) { $0 % 25 == 0 }, MadeUpSound([given]))
        let got = try sound("a.mp4")
        #expect(got.map(\.bytes) == given.packets.filter { Double($0.pts) / 48_000 < 8 }.map(\.bytes))
        #expect(abs((got.first?.seconds ?? -1) - start) < 0.0001)
        #expect(
            try RecorderStreams.packets(of: folder.file("a.mp4")).packets.filter { $0.track == 0 }.map(\.pts)
                == (0..<200).map { $0 * 512 })
    }

    @Test func goesOnWithoutSoundThatHasEnded() throws {
        let given = MadeUpSound.aac(from: 0, to: 1.5)
        _ = try record(RecorderStreams.steady(100) { $0 % 25 == 0 }, MadeUpSound([given]), #", "segmentSeconds": 1"#)
        #expect(
            try (1...4).map { try RecorderStreams.packets(of: folder.file("a-000\($0).mp4")).ticks.count } == [
                2, 2, 1, 1,
            ])
    }

    @Test func carriesAllTracks() throws {
        let sounds = [MadeUpSound.aac(from: 0, to: 3, mark: 1), MadeUpSound.aac(from: 0.01, to: 3, mark: 2)]
        _ = try record(RecorderStreams.steady(50) { $0 == 0 }, MadeUpSound(sounds))
        #expect(try sound("a.mp4", track: 1).allSatisfy { $0.bytes[0] == 1 })
        #expect(try sound("a.mp4", track: 2).allSatisfy { $0.bytes[0] == 2 })
        #expect(try sound("a.mp4", track: 2).count == 94)
    }

    /// A recording by command has the sound of its own span, and begins at 0 with it.
    @Test func carriesTheSoundOfARecordingsSpan() throws {
        let given = MadeUpSound.aac(from: 0, to: 10)
        _ = try record(
            RecorderStreams.steady(200) { $0 % 25 == 0 }, MadeUpSound([given]), #", "record": "onCommand""#,
            at: [60: "start", 140: "stop"])
        let got = try sound("a-0001.mp4")
        let wanted = given.packets.filter { Double($0.pts + 1024) / 48_000 > 3 && Double($0.pts) / 48_000 < 5.6 }
        #expect(got.map(\.bytes) == wanted.map(\.bytes))
        #expect(abs(got[0].seconds - (Double(wanted[0].pts) / 48_000 - 3)) < 0.0001)
    }

    @Test func saysThatThereIsNone() throws {
        let events = try record(RecorderStreams.steady(5) { $0 == 0 }, nil)
        #expect(events[0].name == "sound-missing" && events[0].level == .warning)
        #expect(
            events[0].text
                == "There is no sound to copy: no stage before the recorder offers any. To record other sound, name its 'audio-encoder' in 'from' too."
        )
        #expect(try RecorderStreams.packets(of: folder.file("a.mp4")).packets.count == 5)
    }

    /// Where nobody chose, sound that comes with the pictures and is not recorded is named.
    @Test func saysThatSoundIsNotRecorded() throws {
        func notes(_ options: String, _ sound: MadeUpSound?) throws -> [String] {
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file("n.mp4"))", "overwrite": true\#(options) }"#,
                RecorderStreams.format(), audio: sound)
            return recorder.takeEvents().filter { $0.name == "note" }.map(\.text)
        }
        let sound = MadeUpSound([MadeUpSound.aac(from: 0, to: 1)])
        #expect(
            try notes("", sound) == [
                #"the sound that comes with the pictures (AAC) is not recorded. To record it, set "audio": "copy"; "none" only removes this note."#
            ])
        for options in [#", "audio": "copy""#, #", "audio": "none""#] { #expect(try notes(options, sound).isEmpty) }
        #expect(try notes("", nil).isEmpty)
    }

    /// A still with a song: the sound goes on behind pictures that came to their own end, and ends with those that were
    /// only ended early.
    @Test(arguments: [true, false]) func recordsSoundThatIsLongerThanItsPictures(isWhole: Bool) throws {
        let given = MadeUpSound.aac(from: 0, to: 6)
        let origin = MadeUpSound([given])
        origin.hasGivenAllPictures = isWhole
        _ = try record(RecorderStreams.steady(50) { $0 % 25 == 0 }, origin)
        let got = try sound("a.mp4")
        #expect(got.map(\.bytes) == given.packets.filter { isWhole || Double($0.pts) / 48_000 < 2 }.map(\.bytes))
    }

    @Test func goesOnWhenTheSoundIsDamaged() throws {
        var given = MadeUpSound.aac(from: 0, to: 4)
        given.packets[20].bytes = []
        let events = try record(RecorderStreams.steady(100) { $0 % 25 == 0 }, MadeUpSound([given]))
        #expect(
            events.filter { $0.name == "sound-ended" }.map(\.text) == [
                "Audio track 1 ends here: the file is damaged here."
            ])
        #expect(try sound("a.mp4").count == 20)
        #expect(events.contains { $0.name == "recording-did-stop" })
    }

    @Test(arguments: [
        ("truehd", "mov", "a MOV file"), ("pcm_s16le", "mp4", "an MP4 file"), ("nonsense", "mkv", "a Matroska file"),
    ])
    func refusesWhatAContainerCannotHold(codec: String, ending: String, name: String) throws {
        var given = MadeUpSound.aac(from: 0, to: 1)
        given.format.codec = Codec(rawValue: codec)
        let error = #expect(throws: FrameHostError.self) {
            _ = try record(RecorderStreams.steady(5) { $0 == 0 }, MadeUpSound([given]), ending: ending)
        }
        let remedy =
            ending == "mkv"
            ? "Set \"audio\": \"none\" to record without sound."
            : "Record to \(ending == "mov" ? ".mp4" : ".mov") or .mkv, or decode the sound and put 'audio-encoder' before the recorder, or set \"audio\": \"none\"."
        #expect(error?.description == "audio: \(name) cannot store sound with the codec '\(codec)'. \(remedy)")
    }
}
