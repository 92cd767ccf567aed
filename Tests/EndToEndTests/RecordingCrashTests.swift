// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What is left of a recording when everything ends at a bad moment.
@Suite(.needs(.ffprobe)) struct RecordingCrashTests {
    private let workspace: Workspace

    init() throws {
        workspace = try Workspace()
        try FileManager.default.createDirectory(atPath: workspace.path("out"), withIntermediateDirectories: true)
    }

    /// - Parameter sound: What the source of sound is set to; nil for a recording of pictures alone.
    private static func chain(
        _ source: String, _ encoder: String, _ recorder: String, sound: String? = nil
    ) -> String {
        let stages = sound.map {
            #"{ "id": "tone", "use": "tone-source", \#($0) }, { "id": "aac", "use": "audio-encoder" },"#
        }
        return """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "64x48", \(source) },
              { "id": "h264", "use": "x264-encoder", "bitrateKbps": 100, \(encoder) }, \(stages ?? "")
              { "id": "file", "use": "recorder", \(sound == nil ? "" : #""from": ["h264", "aac"],"#) "finalize": "never", \(recorder) }
            ] }
            """
    }

    // MARK: Every write

    /// The file as it was after every write, and after half of each: it opens, begins as the whole one, and nothing is
    /// missing but the last second.
    @Test(
        .needs(.compiler), .needs(.ffmpeg),
        arguments: [
            (#""rate": 30, "frames": 300"#, #""bframes": 3, "keyframeSeconds": 4"#, #""path": "out/a.mp4""#),
            ("uneven", #""bframes": 2, "keyframeSeconds": 3"#, #""path": "out/a.mov""#),
            (#""rate": 30, "frames": 300"#, #""keyframeSeconds": 1"#, #""path": "out/a-{n}.mp4", "segmentSeconds": 3"#),
            (#""rate": 30, "frames": 200"#, #""bframes": 3, "keyframeSeconds": 1"#, #""path": "out/a.mkv""#),
        ], [nil, #""seconds": 10"#])
    func playsAfterEveryWrite(_ parts: (source: String, encoder: String, recorder: String), sound: String?) throws {
        let (source, encoder, recorder) = parts
        var chain = Self.chain(source, encoder, recorder, sound: sound)
        if source == "uneven" {
            try makeUnevenClip()
            chain = chain.replacingOccurrences(
                of: #""test-source", "size": "64x48", uneven"#, with: #""file-source", "path": "uneven.mkv""#)
        }
        let trace = try WriteTrace(running: chain, in: workspace, below: "out")
        for path in Set(trace.writes.map(\.path)) {
            try check(trace.writes.filter { $0.path == path }, of: path, hasSound: sound != nil)
        }
    }

    /// Ten seconds with pictures missing here and there, and two seconds of none.
    private func makeUnevenClip() throws {
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=30:duration=10", "-vf",
            "select='(not(mod(n,3))+lt(mod(n,7),2))*not(between(t,3,5))'", "-fps_mode", "vfr", "-c:v", "libx264",
            workspace.path("uneven.mkv"))
        guard outcome.status == 0 else { throw TestFault("ffmpeg makes no clip: \(outcome.error)") }
    }

    private func check(_ writes: [WriteTrace.Write], of path: String, hasSound: Bool) throws {
        let tracks = try RecordedFile.tracks(path)
        let (whole, sound) = (try #require(tracks["video"]), tracks["audio"])
        #expect(hasSound ? sound?.packets.isEmpty == false : sound == nil)
        let ending = (path as NSString).pathExtension
        var content = Data()
        var before: RecordedFile?
        #expect(writes.count >= 3)
        for (number, write) in writes.enumerated() {
            for part in [write.data.prefix(write.data.count / 2), write.data] {
                var file = content
                if file.count < write.offset + part.count {
                    file.append(Data(count: write.offset + part.count - file.count))
                }
                file.replaceSubrange(write.offset..<(write.offset + part.count), with: part)
                let isWhole = part.count == write.data.count
                if isWhole { content = file }
                // The first fragment is written in one piece or two: header, then pictures.
                guard before != nil || isWhole else { continue }
                guard let parts = try? RecordedFile.tracks(workspace.write("cut.\(ending)", file)) else {
                    #expect(before == nil, "\(path): after write \(number) it does not open")
                    continue
                }
                let cut = parts["video", default: .empty]
                if before == nil, cut.packets.isEmpty { continue }
                // Half a write leaves half a picture, which a reader shows for what it is.
                #expect(
                    cut.isBegin(of: whole, butLast: !isWhole),
                    "\(path): after write \(number), \(part.count) of \(write.data.count) bytes")
                #expect(cut.packets.count >= before?.packets.count ?? 0, "\(path): write \(number) loses pictures")
                if let sound {
                    let part = try #require(parts["audio"])
                    #expect(part.isBegin(of: sound, butLast: !isWhole), "\(path): the sound after write \(number)")
                }
                guard isWhole else { continue }
                // What this write added had been waiting for at most a second.
                let added = cut.packets.dropFirst(before?.packets.count ?? 0)
                if let first = added.first, let last = added.last {
                    #expect(Double(last.dts &- first.dts) * cut.tick <= 1.0001, "\(path): write \(number)")
                }
                before = cut
            }
        }
        #expect(before?.packets.count == whole.packets.count)
    }

    // MARK: Killed

    /// SIGKILL at a hundred random moments, a third of them after the first file: the files play, and are one after the other what was recorded.
    @Test(arguments: [nil, #""live": true"#]) func playsWhenKilled(sound: String?) async throws {
        let chain = Self.chain(
            #""rate": 120, "live": true"#, #""preset": "ultrafast", "keyframeSeconds": 0.05"#,
            #""path": "out/a-{n}.mp4", "segmentSeconds": 0.2"#, sound: sound
        )
        .replacingOccurrences(of: #""finalize": "never""#, with: #""finalize": "always""#)
        try await withThrowingTaskGroup(of: (frames: Int, sounding: Int).self) { group in
            for lane in 0..<2 {
                group.addTask {
                    var sum = (frames: 0, sounding: 0)
                    for round in 0..<50 {
                        let workspace = try Workspace()
                        try FileManager.default.createDirectory(
                            atPath: workspace.path("out"), withIntermediateDirectories: true)
                        try workspace.write("chain.json", chain)
                        let program = try Program.framehost.start(["chain.json"], folder: workspace.folder.path)
                        if round % 3 == 0 {
                            while access(workspace.path("out/a-2.mp4"), F_OK) != 0, program.isRunning { usleep(1000) }
                        }
                        usleep(.random(in: 50_000...450_000))
                        program.send(SIGKILL)
                        #expect(try program.finish().status == 128 + 9)
                        let found = try Self.checkKilled(
                            workspace, "lane \(lane), round \(round)", hasSound: sound != nil)
                        sum.frames += found.frames
                        sum.sounding += found.sounding
                    }
                    return sum
                }
            }
            var sum = (frames: 0, sounding: 0)
            for try await more in group {
                sum.frames += more.frames
                sum.sounding += more.sounding
            }
            // 34 whole files of 0.2 s at least.
            #expect(sum.frames > 200 && (sound == nil || sum.sounding > 10), "\(sum)")
        }
    }

    /// Frames in all files of a killed run, and how many of its whole files have sound.
    private static func checkKilled(
        _ workspace: Workspace, _ what: String, hasSound: Bool
    ) throws -> (frames: Int, sounding: Int) {
        let names = workspace.names(below: "out").filter { $0.hasSuffix(".mp4") }
        var (frames, sounding) = (0, 0)
        for number in 1..<(names.count + 1) {
            let path = workspace.path("out/a-\(number).mp4")
            let bytes = (try FileManager.default.attributesOfItem(atPath: path))[.size] as? Int ?? 0
            // Only the last file can be without its first fragment, with the recorder's mark alone or nothing; the
            // header alone holds no picture.
            if number == names.count, bytes < 2048,
                try Data(contentsOf: URL(fileURLWithPath: path)).firstRange(of: Data("moov".utf8)) == nil
            {
                break
            }
            guard let tracks = try? RecordedFile.tracks(path) else {
                Issue.record("\(what): file \(number) of \(names.count) with \(bytes) bytes does not open")
                continue
            }
            let file = tracks["video", default: .empty]
            frames += file.packets.count
            if file.packets.isEmpty, number == names.count { break }
            if hasSound, number < names.count {
                let sound = tracks["audio", default: .empty].packets
                if !sound.isEmpty { sounding += 1 }
                // On a busy machine the sound may begin files later than the pictures.
                #expect(!sound.isEmpty || sounding == 0, "\(what): file \(number) is silent")
                #expect(zip(sound, sound.dropFirst()).allSatisfy { $0.dts < $1.dts }, "\(what): file \(number)")
            }
            #expect(file.packets.first?.pts == 0 && file.packets.first?.isKeyframe == true, "\(what): file \(number)")
            #expect(
                zip(file.packets, file.packets.dropFirst()).allSatisfy { $0.dts < $1.dts }, "\(what): file \(number)")
        }
        return (frames, sounding)
    }

    // MARK: No room

    /// Room for so many bytes and no more, at fifty random sizes: the recorder fails with a sentence, and what it says
    /// is saved plays.
    @Test func savesWhatFitsOnTheDisk() throws {
        let disk = try SmallDisk(at: workspace.path("out"))
        for round in 0..<50 {
            let bytes = Int.random(in: 1...120) * 1024
            try disk.empty(room: bytes)
            try workspace.write(
                "chain.json",
                Self.chain(
                    #""rate": 30, "frames": 3000"#, #""preset": "ultrafast", "crf": 10"#, #""path": "out/a.mp4""#
                )
                .replacingOccurrences(of: #""bitrateKbps": 100, "#, with: ""))
            let outcome = try disk.run(["chain.json", "--events", "--quiet"], in: workspace)
            #expect(outcome.status == 1, "\(outcome.error)")
            let events = try outcome.lines.map { try JSON(parsing: $0) }
            guard let failed = events.first(where: { $0["event"].string == "recording-did-fail" }) else {
                Issue.record("round \(round): \(bytes) bytes were enough")
                continue
            }
            let saved = failed["savedFrames"].int ?? -1
            let text = failed["text"].string ?? ""
            #expect(
                text.contains(
                    "out/a.mp4' failed: \(disk.reason). "
                        + (disk.isLimit ? "Set 'segmentMegabytes'" : "Free some space, or record to another disk.")),
                "\(text)")
            if saved == 0 {
                #expect(text.hasSuffix("Nothing of the file was saved."))
                #expect(!workspace.exists("out/a.mp4"))
            } else {
                #expect(
                    try RecordedFile(workspace.path("out/a.mp4")).packets.count == saved,
                    "round \(round), \(bytes) bytes")
                #expect(text.contains(saved == 1 ? "The first frame (" : "The first \(saved) frames ("))
            }
        }
    }

    // MARK: Killed while it finalises

    /// The finalising step killed at twenty random moments, and more until one of them was in the middle: the file under the name plays and is whole; the next run
    /// clears up.
    @Test func neverLosesTheOriginal() throws {
        let chain = Self.chain(
            #""rate": 30, "frames": 400"#, #""preset": "ultrafast", "crf": 1"#, #""path": "out/a-{n}.mp4""#
        )
        .replacingOccurrences(of: #""finalize": "never""#, with: #""finalize": "always""#)
        .replacingOccurrences(of: #""bitrateKbps": 100, "#, with: "").replacingOccurrences(of: "64x48", with: "320x240")
        try workspace.write("chain.json", chain)
        var leftOver = 0
        var finished = 0
        var round = 0
        while round < 20 || leftOver == 0 && round < 200 {
            round += 1
            let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
            // The copy's begin, and a few milliseconds into it, its comparison, its renaming.
            let copy = workspace.path("out/.a-\(round).mp4.finalising")
            while access(copy, F_OK) != 0, program.isRunning { usleep(50) }
            usleep(.random(in: 0...UInt32(min(round, 20)) * 300))
            program.send(SIGKILL)
            let outcome = try program.finish()
            if outcome.output.contains("recording-finalised") { finished += 1 }
            let file = try RecordedFile(workspace.path("out/a-\(round).mp4"))
            #expect(file.packets.count == 400, "round \(round)")
            let temporary = workspace.names(below: "out").filter { $0.hasSuffix(".finalising") }
            // That of this run at most: those before are gone.
            #expect(temporary.isEmpty || temporary == [".a-\(round).mp4.finalising"])
            leftOver += temporary.count
        }
        #expect(leftOver > 0, "no round was killed in the middle (\(finished) had finished)")
    }
}
