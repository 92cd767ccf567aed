// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

@Suite struct StreamMemoryTests {
    /// VPS, SPS and PPS.
    private static let sets: [UInt8] = [0, 0, 0, 1, 64, 1, 255, 0, 0, 0, 1, 66, 1, 255, 0, 0, 0, 1, 68, 1, 255]
    private static let video = EncodedFormat(
        codec: .h265, framing: .annexB, parameterSets: sets,
        video: VideoFormat(
            .i420, width: 2560, height: 1440, frameRate: Rational(30000, 1001),
            color: ColorDescription(range: .full, matrix: 1, primaries: 9, transfer: 16, chromaSiting: 2),
            sampleAspectRatio: Rational(4, 3), orientation: .left), reorderDepth: 2)
    private static let sound = AudioTrackFormat(
        codec: .aac, timeBase: TimeBase(1, 16000), sampleRate: 16000, channelCount: 1, channelMask: .max,
        samplesPerPacket: 1024, bitRate: 32000, blockAlign: 1, bitsPerSample: 16, profile: -99, initialPadding: 7,
        seekPreroll: 8, extradata: [0x14, 0x08])

    private static func passed(_ codec: Codec, _ sets: [UInt8]) -> EncodedFormat {
        EncodedFormat(codec: codec, framing: .own, parameterSets: sets, video: video.video!)
    }

    private static func memory(_ folder: ScratchFolder, _ url: String = "rtsp://h/a?key=geheim") -> StreamMemory {
        StreamMemory(url: url) { $0 == "STATE_DIRECTORY" ? "\(folder.path)/state:/other" : nil }
    }

    @Test func remembersAStream() throws {
        let folder = try ScratchFolder()
        let memory = Self.memory(folder)
        #expect(memory.read() == nil)
        for stream in [
            RememberedStream(video: Self.video), RememberedStream(video: Self.video, sound: Self.sound),
            RememberedStream(video: Self.video),
            RememberedStream(video: Self.passed(.mjpeg, [])), RememberedStream(video: Self.passed(.av1, [0x0A, 1, 0])),
        ] {
            memory.write(stream)
            #expect(memory.read() == stream)
        }
        #expect(Self.memory(folder, "rtsp://h/b").read() == nil)
        #expect(memory.path.hasPrefix("\(folder.path)/state/streams/"))
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/state/streams")
        #expect(files.count == 1 && !memory.path.contains("geheim"))
        let mode = try FileManager.default.attributesOfItem(atPath: memory.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try !String(contentsOfFile: memory.path, encoding: .utf8).contains("geheim"))
    }

    /// Who takes no sound knows nothing of it.
    @Test func keepsTheSoundThatNobodyTook() throws {
        let folder = try ScratchFolder()
        let memory = Self.memory(folder)
        let whole = RememberedStream(video: Self.video, sound: Self.sound)
        memory.write(whole)
        memory.write(RememberedStream(video: Self.video), keepsSound: true)
        #expect(memory.read() == whole)
        memory.write(RememberedStream(video: Self.video))
        #expect(memory.read() == RememberedStream(video: Self.video))
    }

    @Test func saysWhereNothingCanBeRemembered() throws {
        let folder = try ScratchFolder()
        #expect(Self.memory(folder).obstacle == nil)
        let inTheWay = StreamMemory(url: "u") { $0 == "STATE_DIRECTORY" ? "/dev/null" : nil }
        #expect(inTheWay.obstacle?.hasPrefix("'/dev/null/streams' cannot be written (") == true)
    }

    @Test func looksInTheUsualPlaces() {
        func path(_ variables: [String: String]) -> String {
            String(
                StreamMemory(url: "u") { variables[$0] }.path.split(separator: "/").dropLast().joined(separator: "/"))
        }
        #expect(path(["STATE_DIRECTORY": "/a:/b", "XDG_STATE_HOME": "/x", "HOME": "/h"]) == "a/streams")
        #expect(path(["XDG_STATE_HOME": "/x", "HOME": "/h"]) == "x/framehost/streams")
        #expect(path(["HOME": "/h"]) == "h/.local/state/framehost/streams")
        #expect(path([:]) == "var/lib/framehost/streams")
    }

    /// Each way in which a file can be broken counts as none.
    @Test func takesADamagedFileForNone() throws {
        let folder = try ScratchFolder()
        let memory = Self.memory(folder)
        let stream = RememberedStream(video: Self.video, sound: Self.sound)
        memory.write(stream)
        let text = try String(contentsOfFile: memory.path, encoding: .utf8)
        func read(_ text: String) throws -> RememberedStream? {
            try text.write(toFile: memory.path, atomically: false, encoding: .utf8)
            return memory.read()
        }
        for count in 0..<text.count - 2 { #expect(try read(String(text.prefix(count))) == nil, "\(count)") }
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"), ("2560", "-1"), ("2560", "99999999"), ("h265", "vp9"),
            ("00000001", "0000000"), ("000000014201ff", ""), ("30000", "-30000"), ("1001", "0"), ("full", "x"),
            ("16000", "7"), ("1024", "-5"),
        ] {
            #expect(text.contains(from), "\(from)")
            let damaged = try read(text.replacing(from, with: to))
            #expect(damaged == nil, "\(from)")
        }
        #expect(
            try read("[1, 2]") == nil && read(#"{"version": 1}"#) == nil
                && read(String(repeating: " ", count: 1 << 17)) == nil)
        memory.write(stream)
        #expect(memory.read() == stream)
    }

    /// A folder that cannot be made takes nothing with it.
    @Test func saysNothingWhereItCannotWrite() {
        let memory = StreamMemory(url: "u") { $0 == "STATE_DIRECTORY" ? "/dev/null/state" : nil }
        memory.write(RememberedStream(video: Self.video))
        #expect(memory.read() == nil)
    }
}
