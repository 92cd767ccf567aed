// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// Sound on an input of its own that comes earlier than the pictures of its time: what a file has does not depend on it.
@Suite struct RecorderEarlySoundTests {
    private static let sound = MadeUpSound.aac(from: -0.1, to: 10)

    /// Records ten seconds of pictures, from 0.5 s on, and their sound.
    ///
    /// - Parameters:
    ///   - early: How much earlier than its pictures sound comes, in seconds.
    ///   - pictures: Which pictures there are.
    /// - Returns: The bytes of the sound's packets in each file, with their times in the file.
    private func record(
        _ options: String, ending: String, early: Double, _ pictures: [RecorderStreams.Unit]
    ) throws -> [[(seconds: Double, bytes: [UInt8])]] {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            Recorder.self,
            options: #"{ "path": "\#(folder.file("a.\(ending)"))", "finalize": "never"\#(options) }"#,
            inputs: [
                .encoded(RecorderStreams.format()), .encoded(EncodedFormat(codec: .aac, audio: Self.sound.format)),
            ])
        var rest = Self.sound.packets[...]
        let ticks = Self.sound.format.timeBase
        func send(soundBefore time: MediaTime) throws {
            while let packet = rest.first, ticks.time(ofTicks: packet.dts) < time {
                rest.removeFirst()
                let unit = try recorder.makeAccessUnit(
                    packet.bytes, pts: ticks.time(ofTicks: packet.pts), isKeyframe: true, input: 1)
                unit.duration = ticks.time(ofTicks: packet.duration)
                try recorder.send(unit, from: 1)
            }
        }
        for picture in pictures {
            try send(soundBefore: picture.dts + MediaTime(seconds: early))
            let unit = try recorder.makeAccessUnit(
                picture.bytes, pts: picture.pts, dts: picture.dts, isKeyframe: picture.isKeyframe)
            unit.duration = picture.duration
            try recorder.send(unit, from: 0)
        }
        try send(soundBefore: .max)
        try recorder.finish()
        #expect(!recorder.takeEvents().contains { $0.level >= .warning })
        return try RecorderStreams.names(in: folder).map { name in
            let (packets, ticks) = try RecorderStreams.packets(of: folder.file(name))
            return packets.filter { $0.track == 1 }.map { (ticks[1].time(ofTicks: $0.pts).seconds, $0.bytes) }
        }
    }

    @Test(arguments: ["mp4", "mkv"], ["", #", "segmentSeconds": 2"#]) func hasTheSoundOfItsPictures(
        ending: String, options: String
    ) throws {
        let pictures = RecorderStreams.steady(200, from: 0.5) { $0 % 25 == 0 }
        let inOrder = try record(options, ending: ending, early: 0, pictures)
        #expect(inOrder.count == (options.isEmpty ? 1 : 4))
        // The last file has what is longer than the pictures, too.
        let all = Set(inOrder.joined().map(\.bytes))
        let wanted = Self.sound.packets.filter { Double($0.pts) / 48_000 >= 0.5 }
        #expect(wanted.allSatisfy { all.contains($0.bytes) })
        for early in [0.3, 4, 20] {
            let found = try record(options, ending: ending, early: early, pictures)
            #expect(found.map { $0.map(\.seconds) } == inOrder.map { $0.map(\.seconds) }, "\(early) s early")
            #expect(found.map { $0.map(\.bytes) } == inOrder.map { $0.map(\.bytes) }, "\(early) s early")
        }
    }

    /// A camera that stands still does not cost the sound.
    @Test func keepsTheSoundWhilePicturesPause() throws {
        var pictures = RecorderStreams.steady(250) { $0 % 25 == 0 }
        pictures.removeSubrange(50..<200)
        let found = try record("", ending: "mkv", early: 0.02, pictures)
        let wanted = Self.sound.packets.filter { $0.pts >= 0 }.map(\.bytes)
        #expect(Array(found[0].map(\.bytes).suffix(wanted.count)) == wanted)
    }

    /// What a killed run leaves has both tracks, and of each what comes first.
    @Test(arguments: ["mp4", "mov", "mkv"]) func eachBeginOfAFilePlaysWithBothTracks(ending: String) throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.\(ending)")
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(path)", "finalize": "never" }"#,
            inputs: [
                .encoded(RecorderStreams.format()), .encoded(EncodedFormat(codec: .aac, audio: Self.sound.format)),
            ])
        var sizes: [Int] = []
        var rest = Self.sound.packets[...]
        let ticks = Self.sound.format.timeBase
        for picture in RecorderStreams.steady(100, isKey: { $0 % 25 == 0 }) {
            while let packet = rest.first, ticks.time(ofTicks: packet.dts) < picture.dts {
                rest.removeFirst()
                let unit = try recorder.makeAccessUnit(
                    packet.bytes, pts: ticks.time(ofTicks: packet.pts), isKeyframe: true, input: 1)
                unit.duration = ticks.time(ofTicks: packet.duration)
                try recorder.send(unit, from: 1)
            }
            let unit = try recorder.makeAccessUnit(
                picture.bytes, pts: picture.pts, dts: picture.dts, isKeyframe: picture.isKeyframe)
            unit.duration = picture.duration
            try recorder.send(unit, from: 0)
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            if size != sizes.last { sizes.append(size) }
        }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(sizes.count >= 3 && sizes.last! <= bytes.count)
        try recorder.finish()
        let whole = try RecorderStreams.packets(of: path).packets
        // Each size that the file had behind a write, and sizes between.
        let between = zip(sizes, sizes.dropFirst()).flatMap { [($0 + $1) / 2, $1 - 1] }
        var played = 0
        for size in (sizes + between).sorted() where size > sizes[0] {
            let cut = folder.file("cut.\(ending)")
            try bytes.prefix(size).write(to: URL(fileURLWithPath: cut))
            // libavformat opens no file that ends within the header of its first fragment.
            guard let (packets, tracks) = try? RecorderStreams.packets(of: cut) else { continue }
            #expect(tracks.count == 2, "\(size) bytes")
            for track in 0..<2 {
                let part = packets.filter { $0.track == track && $0.bytes.count > 0 }.map(\.bytes)
                let all = whole.filter { $0.track == track }.map(\.bytes)
                // The last packet may be cut.
                #expect(all.starts(with: part.dropLast()), "\(size) bytes, track \(track)")
            }
            played += packets.isEmpty ? 0 : 1
        }
        #expect(played * 2 >= sizes.count, "\(played) of \(sizes.count) and \(between.count)")
    }

    /// Sound of another clock: never silently missing.
    @Test func saysThatSoundIsOfAnotherTime() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(folder.file("a.mkv"))", "finalize": "never" }"#,
            inputs: [
                .encoded(RecorderStreams.format()), .encoded(EncodedFormat(codec: .aac, audio: Self.sound.format)),
            ], isLive: true)
        let ticks = Self.sound.format.timeBase
        for picture in RecorderStreams.steady(50, from: 60, isKey: { $0 == 0 }) {
            let unit = try recorder.makeAccessUnit(
                picture.bytes, pts: picture.pts, dts: picture.dts, isKeyframe: picture.isKeyframe)
            unit.duration = picture.duration
            try recorder.send(unit, from: 0)
        }
        for packet in Self.sound.packets.prefix(20) {
            let unit = try recorder.makeAccessUnit(
                packet.bytes, pts: ticks.time(ofTicks: packet.pts), isKeyframe: true, input: 1)
            unit.duration = ticks.time(ofTicks: packet.duration)
            try recorder.send(unit, from: 1)
        }
        #expect(recorder.dropCount(.byStage) == 20)
        try recorder.finish()
        let warnings = recorder.takeEvents().filter { $0.level >= .warning }
        #expect(warnings.map(\.name) == ["sound-late"])
        #expect(
            warnings.first?.text.contains("its times lie 60.1 s before the start of the file") == true,
            "\(warnings.first?.text ?? "")")
    }

    /// A command ends the recording while sound is further than its pictures.
    @Test func endsWithItsPicturesOnCommand() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(folder.file("a.mkv"))", "finalize": "never" }"#,
            inputs: [
                .encoded(RecorderStreams.format()), .encoded(EncodedFormat(codec: .aac, audio: Self.sound.format)),
            ])
        let ticks = Self.sound.format.timeBase
        for packet in Self.sound.packets.prefix(300) {
            let unit = try recorder.makeAccessUnit(
                packet.bytes, pts: ticks.time(ofTicks: packet.pts), isKeyframe: true, input: 1)
            unit.duration = ticks.time(ofTicks: packet.duration)
            try recorder.send(unit, from: 1)
        }
        for picture in RecorderStreams.steady(50, isKey: { $0 == 0 }) {
            let unit = try recorder.makeAccessUnit(
                picture.bytes, pts: picture.pts, dts: picture.dts, isKeyframe: picture.isKeyframe)
            unit.duration = picture.duration
            try recorder.send(unit, from: 0)
        }
        try recorder.command("stop")
        let times = try RecorderStreams.packets(of: folder.file("a.mkv")).packets.filter { $0.track == 1 }.map(\.pts)
        #expect((times.last ?? 0) < 2000 && (times.last ?? 0) >= 1970, "\(times.suffix(3)) ms")
        try recorder.finish()
    }
}
