// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// Recordings without pictures: the first sound leads.
@Suite struct RecorderSoundAloneTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    /// Five seconds of AAC from its priming on: the first sound that is heard is at 0.
    private static let sound = {
        var sound = MadeUpSound.aac(from: -1024.0 / 48_000, to: 5)
        sound.format.initialPadding = 1024
        return sound
    }()

    private func recorder(_ name: String, _ options: String = "", isLive: Bool = false) throws -> StageDriver<Recorder>
    {
        try StageDriver(
            recording: #"{ "path": "\#(folder.file(name))"\#(options) }"#,
            EncodedFormat(codec: .aac, audio: Self.sound.format), isLive: isLive)
    }

    private func send(_ packet: AudioPacket, _ recorder: StageDriver<Recorder>, later: Double = 0) throws {
        let ticks = Self.sound.format.timeBase
        let unit = try recorder.makeAccessUnit(
            packet.bytes, pts: ticks.time(ofTicks: packet.pts) + MediaTime(seconds: later), isKeyframe: true)
        unit.duration = ticks.time(ofTicks: packet.duration)
        unit.capturedAt = 1_000_000_000
        try recorder.send(unit)
    }

    private func heard(_ name: String) throws -> [(samples: Int, bytes: [UInt8])] {
        let (packets, ticks) = try RecorderStreams.packets(of: folder.file(name))
        #expect(packets.allSatisfy { $0.track == 0 && $0.isKeyframe })
        return packets.map { (Int((ticks[0].time(ofTicks: $0.pts).seconds * 48_000).rounded()), $0.bytes) }
    }

    @Test(arguments: ["m4a", "mp4", "mov", "mka", "mkv"], ["never", "always"]) func writesPacketsAtTheirTimes(
        ending: String, finalize: String
    ) throws {
        let recorder = try recorder("a.\(ending)", #", "finalize": "\#(finalize)""#)
        for packet in Self.sound.packets { try send(packet, recorder) }
        try recorder.finish()
        let events = recorder.takeEvents()
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let got = try heard("a.\(ending)")
        #expect(got.map(\.bytes) == Self.sound.packets.map(\.bytes))
        // Matroska has ticks of a millisecond, and two of them are rounded.
        let most = ending.hasPrefix("mk") ? 48 : 0
        // Matroska has no times before 0.
        let moved = ending.hasPrefix("mk") ? 1024 : 0
        let wrong = zip(got, Self.sound.packets).filter { abs($0.samples - Int($1.pts) - moved) > most }
        #expect(wrong.isEmpty, "\(wrong.first.map { "\($0.0.samples) for \($0.1.pts)" } ?? "")")
        let end = try #require(events.first { $0.name == "recording-did-stop" })
        #expect(end.details["frames"]?.asInt == Self.sound.packets.count)
        #expect(abs((end.details["seconds"]?.asDouble ?? 0) - 5) < 0.022)
    }

    /// In MP4 each file begins with the packet before it, which a decoder needs and nobody hears.
    @Test(arguments: ["m4a", "mka"], [false, true]) func goesOnInAnotherFileWithoutALoss(
        ending: String, isLive: Bool
    ) throws {
        let recorder = try recorder("a{n}.\(ending)", #", "segmentSeconds": 1"#, isLive: isLive)
        for packet in Self.sound.packets { try send(packet, recorder, later: isLive ? 77 : 0) }
        try recorder.finish()
        #expect(!recorder.takeEvents().contains { $0.level >= .warning })
        let files = try RecorderStreams.names(in: folder).map(heard)
        // A file is full a twentieth early.
        #expect((5...6).contains(files.count))
        var all: [[UInt8]] = []
        for (number, file) in files.enumerated() {
            // Of the first file it is the encoder's priming.
            let leadIn = number == 0 || ending == "m4a" ? 1 : 0
            // Matroska has no times before 0.
            let moved = ending == "mka" && number == 0 ? 1024 : 0
            if leadIn > 0 {
                #expect(abs(file[0].samples + 1024 - moved) <= 24, "file \(number) begins at \(file[0].samples)")
            }
            #expect(abs(file[leadIn].samples - moved) <= 24, "file \(number): \(file[leadIn].samples)")
            if number > 0, leadIn > 0 { #expect(file[0].bytes == all.last) }
            all += file.dropFirst(number > 0 ? leadIn : 0).map(\.bytes)
        }
        #expect(all == Self.sound.packets.map(\.bytes))
    }

    @Test func beginsWithThePastOnCommand() throws {
        let recorder = try recorder("a.m4a", #", "record": "onCommand", "preEventSeconds": 1"#, isLive: true)
        let packets = Self.sound.packets
        for packet in packets[..<100] { try send(packet, recorder) }
        #expect(RecorderStreams.names(in: folder).isEmpty)
        try recorder.command("start")
        for packet in packets[100..<150] { try send(packet, recorder) }
        try recorder.command("stop")
        for packet in packets[150...] { try send(packet, recorder) }
        try recorder.finish()
        let names = RecorderStreams.names(in: folder)
        #expect(names.count == 1)
        let got = try heard(#require(names.first)).map(\.bytes)
        #expect(Array(got.suffix(50)) == packets[100..<150].map(\.bytes))
        // A second is 46.9 packets.
        #expect((96...99).contains(got.count) && got == packets[(150 - got.count)..<150].map(\.bytes))
    }

    @Test func recordsSeveralSounds() throws {
        let format = MediaFormat.encoded(EncodedFormat(codec: .aac, audio: Self.sound.format))
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(folder.file("a.mka"))" }"#, inputs: [format, format])
        let ticks = Self.sound.format.timeBase
        for packet in Self.sound.packets {
            for input in 0..<2 {
                let unit = try recorder.makeAccessUnit(
                    packet.bytes + [UInt8(input)], pts: ticks.time(ofTicks: packet.pts), isKeyframe: true, input: input)
                unit.duration = ticks.time(ofTicks: packet.duration)
                try recorder.send(unit, from: input)
            }
        }
        try recorder.finish()
        let (packets, _) = try RecorderStreams.packets(of: folder.file("a.mka"))
        for input in 0..<2 {
            #expect(
                packets.filter { $0.track == input }.map(\.bytes)
                    == Self.sound.packets.map { $0.bytes + [UInt8(input)] })
        }
    }

    @Test func saysWhatDoesNotFit() {
        func refusal(_ name: String, _ inputs: [MediaFormat]) -> String? {
            let error = #expect(throws: FrameHostError.self) {
                try StageDriver(Recorder.self, options: #"{ "path": "\#(folder.file(name))" }"#, inputs: inputs)
            }
            return error?.description
        }
        let sound = MediaFormat.encoded(EncodedFormat(codec: .aac, audio: Self.sound.format))
        let pictures = MediaFormat.encoded(RecorderStreams.format())
        #expect(
            refusal("a.m4a", [pictures, sound])
                == "path: a file of this name has sound alone, but 'from' names pictures. Record to .mp4 or .mov.")
        #expect(
            refusal("a.mka", [pictures])
                == "path: a file of this name has sound alone, but 'from' names pictures. Record to .mkv.")
        #expect(
            refusal("a.m4a", [sound, .motion(MotionFormat(contents: [.rotationRate], sampleRate: 100))])
                == "from: motion is recorded beside pictures, but no input has any. Remove the motion from 'from', or name a stage that gives H.264, H.265, MJPEG or AV1 too."
        )
    }
}
