// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// What is told of a file of which the sound alone is taken.
@Suite struct SoundAccountTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private static let sine = ["-f", "lavfi", "-i", "sine=f=500:d=6:r=48000"]

    private func play(_ name: String, options: String = "") throws -> (account: InputAccount?, events: [Event]) {
        let source = try StageDriver(FileSound.self, options: #"{ "path": "\#(folder.file(name))"\#(options) }"#)
        var isOver = false
        while !isOver {
            isOver = try source.produce() == .ended
            while source.takeAudioBlock() != nil {}
            while source.takeAccessUnit() != nil {}
        }
        let account = source.stage.context.inputAccount
        try source.stop()
        return (account, source.takeEvents())
    }

    /// Half of a song is no whole one, decoded or not; a whole one is.
    @Test(.needsFFmpeg, arguments: ["m4a", "mka", "wav", "opus", "mp3", "flac"], [true, false])
    func missesWhatTheFilePromises(ending: String, isDecoded: Bool) throws {
        guard isDecoded || !["wav", "flac"].contains(ending) else { return }
        let codec = ending == "mka" ? ["-c:a", "libopus"] : ending == "m4a" ? ["-movflags", "+faststart"] : []
        try ClipMaker.ffmpeg(arguments: Self.sine + codec + [folder.file("whole.\(ending)")])
        let bytes = try Data(contentsOf: URL(filePath: folder.file("whole.\(ending)")))
        try bytes.prefix(bytes.count / 2 + 7).write(to: URL(filePath: folder.file("half.\(ending)")))
        let options = isDecoded ? "" : #", "decode": false"#
        let whole = try play("whole.\(ending)", options: options)
        #expect(whole.account?.isWhole == true, "\(String(describing: whole.account))")
        #expect(!whole.events.contains { $0.level == .warning }, "\(whole.events.map(\.text))")
        let half = try play("half.\(ending)", options: options)
        let shortfall = try #require(half.account?.shortfall)
        #expect(half.account?.hasEnded == true)
        #expect(half.events.contains { $0.name == "file-incomplete" && $0.text == "\(shortfall)." })
        // What was asked for is there.
        let part = try play("half.\(ending)", options: options + #", "duration": 1"#)
        #expect(part.account?.shortfall == nil, "\(String(describing: part.account))")
    }

    @Test(.needsFFmpeg) func countsWhatCannotBeDecoded() throws {
        try ClipMaker.ffmpeg(arguments: Self.sine + ["-movflags", "+faststart", folder.file("a.m4a")])
        var bytes = try Data(contentsOf: URL(filePath: folder.file("a.m4a")))
        bytes.replaceSubrange(
            bytes.count / 2..<bytes.count * 3 / 4, with: Data(count: bytes.count * 3 / 4 - bytes.count / 2))
        try bytes.write(to: URL(filePath: folder.file("a.m4a")))
        let (account, events) = try play("a.m4a")
        let damaged = try #require(account?.damaged)
        #expect(damaged > 10 && account?.isWhole == false)
        #expect(
            events.contains { $0.text.hasPrefix("\(damaged) packets of the sound of") }, "\(events.map(\.text))")
    }

    @Test(.needsFFmpeg) func namesTheTracksThatAreDropped() throws {
        try ClipMaker.ffmpeg(
            arguments: Self.sine + Self.sine + ["-map", "0", "-map", "1", "-c:a", "libopus", folder.file("two.mka")])
        let events = try play("two.mka").events.filter { $0.name == "track-not-carried" }
        #expect(events.map(\.text) == ["The audio track 2 (opus) is dropped."])
    }

    @Test(.needsFFmpeg) func findsSoundThatBeginsLate() throws {
        try ClipMaker.ffmpeg(
            arguments: [
                "-f", "lavfi", "-i", ClipMaker.moving(count: 400), "-f", "lavfi", "-i",
                "aevalsrc=0.5*sin(3000*t):d=16:s=48000", "-af", "aselect='gt(t,11.5)'", "-c:v", "libx264", "-pix_fmt",
                "yuv420p", "-c:a", "aac", folder.file("late.ts"),
            ])
        let source = try StageDriver(FileSound.self, options: #"{ "path": "\#(folder.file("late.ts"))" }"#)
        #expect(source.outputFormat?.audio?.sampleRate == 48_000)
        try source.stop()
    }

    @Test(.needsFFmpeg) func saysWhyG726CannotBePassedOn() throws {
        try ClipMaker.ffmpeg(
            arguments: ["-f", "lavfi", "-i", "sine=r=8000:d=1", "-c:a", "g726", folder.file("a.wav")])
        #expect {
            _ = try play("a.wav", options: #", "decode": false"#)
        } throws: {
            FrameHostError.wrap($0).what.contains("G.726 packed as RTP has it")
        }
    }
}
