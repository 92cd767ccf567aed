// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Files that are damaged, cut off, or no video at all: what can be played is played, what cannot is said, and nothing
/// hangs or crashes.
@Suite struct DamagedClipTests {
    /// Every picture that ffprobe finds is there, and the run says that some are not.
    ///
    /// - Parameter promised: How many pictures the file says that it has: the status is 1 where fewer are left.
    private func expectPart(
        _ workshop: ClipWorkshop, _ path: String, says text: String, promised: Int,
        _ place: SourceLocation = #_sourceLocation
    ) throws -> Int {
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.error.contains(text), "\(outcome.error)", sourceLocation: place)
        let (before, after) = (try ClipProbe(path), try ClipProbe(result))
        #expect(after.times.count == before.times.count, sourceLocation: place)
        #expect(
            outcome.status == (after.times.count < promised ? 1 : 0), "\(after.times.count): \(outcome.error)",
            sourceLocation: place)
        return after.times.count
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["a.mp4", "a.mkv", "a.avi", "mjpeg.avi"])
    func playsWhatIsLeftOfATruncatedFile(name: String) throws {
        let workshop = try ClipWorkshop()
        try workshop.make(
            name, ClipWorkshop.moving(count: 50),
            name == "a.avi"
                ? "-c:v mpeg4"
                : name == "mjpeg.avi" ? "-c:v mjpeg -pix_fmt yuvj420p" : "-bf 3 -g 12 -movflags faststart")
        let path = try workshop.change(name, to: "cut-" + name) { $0 = $0.prefix($0.count * 2 / 3) }
        let count = try expectPart(workshop, path, says: "cut-\(name)' ends early", promised: 50)
        #expect(count > 10 && count < 45)
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["a.mp4", "a.mkv", "a.ts"]) func playsWhatIsLeftOfADamagedFile(
        name: String
    ) throws {
        let workshop = try ClipWorkshop()
        try workshop.make(name, ClipWorkshop.moving(count: 50), "-bf 3 -g 12 -movflags faststart")
        let path = try workshop.change(name, to: "bad-" + name) { bytes in
            for index in stride(from: bytes.count / 3, to: bytes.count / 2, by: 97) { bytes[index] ^= 0xff }
        }
        // In Matroska the damage may also hit headers of blocks, whose pictures are then missing. A transport stream does
        // not say how many it has.
        let count = try expectPart(
            workshop, path, says: "bad-\(name)' were damaged; the rest was played.", promised: name == "a.ts" ? 0 : 50)
        #expect(count > 30)
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func playsAnAVIWithoutItsIndex() throws {
        let workshop = try ClipWorkshop()
        try workshop.make("a.avi", ClipWorkshop.moving(count: 50), "-c:v mpeg4 -g 12")
        let path = try workshop.change("a.avi", to: "b.avi") { bytes in
            let index = try #require(bytes.range(of: Data("idx1".utf8), options: .backwards))
            bytes = bytes.prefix(index.lowerBound)
        }
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        try AwkwardClipTests.expectSame(try ClipProbe(path), try ClipProbe(result))
        #expect(try ClipProbe(result).times.count == 50)
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["a.ts", "a.h264"]) func playsFromTheFirstKeyframeOn(
        name: String
    ) throws {
        let workshop = try ClipWorkshop()
        try workshop.make(name, ClipWorkshop.moving(count: 50), "-bf 3 -g 20")
        let path = try workshop.change(name, to: "mid-" + name) { $0 = $0.dropFirst($0.count / 4 / 188 * 188) }
        let count = try expectPart(workshop, path, says: "mid-\(name)' does not start with a keyframe: ", promised: 0)
        #expect(count == 30)
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: ["ts", "h264"]) func scalesPicturesThatChangeTheirSize(
        kind: String
    ) throws {
        let workshop = try ClipWorkshop()
        for (name, size, begin) in [("1", "320x240", "0"), ("2", "640x480", "2"), ("3", "320x180", "4")] {
            try workshop.make(
                "\(name).\(kind)", ClipWorkshop.moving(size), kind == "ts" ? "-output_ts_offset \(begin)" : "")
        }
        let path = try workshop.change("1.\(kind)", to: "joined.\(kind)") {
            try $0.append(workshop.workspace.data("2.\(kind)") + workshop.workspace.data("3.\(kind)"))
        }
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let after = try ClipProbe(result)
        #expect(after.size == "320x240")
        if kind == "ts" { try AwkwardClipTests.expectSame(try ClipProbe(path), after, fromZero: true) }
        #expect(after.times.count == 75)
    }

    @Test(.needs(.ffmpeg)) func saysWhyAFileIsNotPlayed() throws {
        let workshop = try ClipWorkshop()
        try workshop.ffmpeg(["-f", "lavfi", "-i", "sine", "-t", "1", "-c:a", "aac", "sound.mp4"])
        try workshop.make("a.mp4", ClipWorkshop.moving())
        _ = try workshop.change("a.mp4", to: "no index.mp4") { $0 = $0.prefix($0.count / 2) }
        try workshop.workspace.write("empty.mp4", Data())
        try workshop.workspace.write("text.mp4", "only words\n")
        try workshop.workspace.write(
            "noise.mp4", Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5 ^ $0) }))
        try workshop.workspace.write("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.mp4\n")
        let said = [
            "sound.mp4": "has no video track, only audio (aac). Name a file with video.",
            "no index.mp4": "is not a media file that libavformat can read.",
            "empty.mp4": "is empty. Copy or record it again.",
            "text.mp4": "is not a media file that libavformat can read.",
            "noise.mp4": "is not a media file that libavformat can read.",
            "list.m3u8": "contains no pictures: it is a list of other files (hls). Name one of the files in it.",
            "none.mp4": "does not exist. Correct 'path'.", ".": "is a folder. Name a file in it.",
        ]
        for (name, text) in said {
            let (outcome, result) = try workshop.play(workshop.workspace.path(name))
            #expect(outcome.status == 2, "\(name): \(outcome.error)")
            #expect(outcome.error.contains(text), "\(name): \(outcome.error)")
            #expect(!FileManager.default.fileExists(atPath: result), "\(name)")
        }
    }

    /// Nothing in the file is a picture, though its header says so.
    @Test(.needs(.ffmpeg)) func failsWhereNotOnePictureCanBeShown() throws {
        let workshop = try ClipWorkshop()
        try workshop.make("a.mp4", ClipWorkshop.moving(), "-movflags faststart")
        let path = try workshop.change("a.mp4", to: "zeros.mp4") { bytes in
            let data = try #require(bytes.range(of: Data("mdat".utf8)))
            bytes.replaceSubrange(data.upperBound..<bytes.count, with: Data(count: bytes.count - data.upperBound))
        }
        let (outcome, _) = try workshop.play(path)
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(outcome.error.contains("zeros.mp4'"), "\(outcome.error)")
    }

    /// The library for deinterlacing costs start-up time, so only who asks for it has it.
    @Test(.needs(.ffmpeg), arguments: [true, false]) func loadsLibavfilterOnlyToDeinterlace(isAsked: Bool) throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.make("a.mp4", ClipWorkshop.moving(count: 3))
        let chain = try workshop.workspace.write(
            "filter.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "\(path)", "deinterlace": \(isAsked) }, { "id": "end", "use": "null-sink" } ] }
            """)
        let outcome = try Program.framehost.run([chain, "--quiet"], environment: ["LD_DEBUG": "files"])
        #expect(outcome.status == 0)
        #expect(outcome.error.contains("libavfilter.so") == isAsked)
    }
}
