// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Foundation
import Testing

@testable import FileSource

/// What files promise, and whether `file-source` sees that one gave less: never of a healthy file, always of a cut one.
@Suite struct FilePromiseTests {
    @Test func readsHowLongAMatroskaFileMustBe() {
        func end(_ segmentSize: [UInt8]) -> Int64? {
            // An EBML head of three bytes.
            let head: [UInt8] = [0x1a, 0x45, 0xdf, 0xa3, 0x83, 1, 2, 3, 0x18, 0x53, 0x80, 0x67]
            return MatroskaSegment(head: head + segmentSize + [0, 0])?.end
        }
        #expect(end([0x85]) == Int64(18))
        #expect(end([0x40, 0x64]) == Int64(114))
        #expect(end([0x01, 0, 0, 0, 0, 0x01, 0, 0]) == Int64(65556))
        // All ones: not known, as in a recording that was not finished.
        #expect(end([0xff]) == nil)
        #expect(end([0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) == nil)
        for head: [UInt8] in [[], [0x1a], [0x1a, 0x45, 0xdf, 0xa3, 0xff], [0, 0, 0, 0], Array("RIFF1234AVI ".utf8)] {
            #expect(MatroskaSegment(head: head) == nil)
        }
    }

    @Test func readsTheLengthOfATrackFromItsTag() {
        #expect(FilePromise.duration("00:00:08.023000000") == MediaTime(nanoseconds: 8_023_000_000))
        #expect(FilePromise.duration("01:02:03") == MediaTime(seconds: 3723))
        for text in ["", "8", "00:60:00", "00:00:61", "-1:00:00", "00:00:00", "1e9:00:00", "0:0:nan"] {
            #expect(FilePromise.duration(text) == nil, "\(text)")
        }
    }

    @Test func findsPlacesOfTheIndexThatHaveNothing() {
        var notes = PacketNotes(cues: [0, 100, 200, 300, 400], reach: 10)
        for tick in [-5, 30, 109, 320, 350] as [Int64] { notes.note(tick: tick) }
        #expect(notes.missingCues(from: nil, isToEnd: false).map { [Int64($0.count), $0.first] } == [2, 200])
        #expect(notes.missingCues(from: nil, isToEnd: true).map { [Int64($0.count), $0.first] } == [3, 200])
        #expect(notes.missingCues(from: 301, isToEnd: false) == nil)
        #expect(notes.again.missingCues(from: nil, isToEnd: true)?.count == 5)
        #expect(PacketNotes().missingCues(from: nil, isToEnd: true) == nil)
    }

    private func account(_ path: String, _ options: String = "") throws -> InputAccount {
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)"\#(options) }"#)
        var count = 0
        while try source.produce() == .more {
            while source.takeFrame() != nil { count += 1 }
            while source.takeAccessUnit() != nil { count += 1 }
        }
        while source.takeFrame() != nil { count += 1 }
        let account = try #require(source.context.inputAccount)
        #expect(account.given == count)
        try source.stop()
        return account
    }

    /// As a phone trims a film: its edit list (ISO/IEC 14496-12, 8.6.6) shows a second from the middle, and nothing is
    /// copied.
    private func trim(_ path: String, to other: String) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let list = try #require(bytes.range(of: Data("elst".utf8))).upperBound + 8
        let begin = bytes[list + 4..<list + 8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } + 15360
        let entry = [UInt32(1000), begin].flatMap { value in
            (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
        }
        bytes.replaceSubrange(list..<list + 8, with: entry)
        try bytes.write(to: URL(fileURLWithPath: other))
    }

    /// Files that cameras, phones and muxers make: edit lists that hide pictures, B-frames, sound that is longer, times
    /// below 0, gaps, no index, no length.
    @Test(.needsFFmpeg) func callsNoHealthyFileDamaged() throws {
        let folder = try ScratchFolder()
        func ffmpeg(_ text: String) throws {
            let program = try #require(Tool.ffmpeg)
            try Tool.run(
                program,
                ["-nostdin", "-v", "error", "-y"]
                    + text.split(separator: " ").map {
                        $0.hasPrefix("@") ? folder.file(String($0.dropFirst())) : String($0)
                    })
        }
        let moving = "-f lavfi -i testsrc2=s=160x120:r=30:d=3"
        let h264 = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -bf 2 -g 30"
        try ffmpeg("\(moving) -f lavfi -i sine=d=4 \(h264) -c:a aac @sound.mp4")
        try ffmpeg("\(moving) \(h264) -x264-params open-gop=1 @open.mp4")
        try ffmpeg("-i @sound.mp4 -c copy @sound.mkv")
        try ffmpeg("-ss 1.3 -i @sound.mp4 -c copy @late.mp4")
        try ffmpeg("-ss 1.3 -t 0.9 -i @sound.mp4 -c copy @middle.mov")
        try ffmpeg("-ss 1.7 -i @open.mp4 -c copy @open.mkv")
        try ffmpeg("-i @open.mp4 -c copy -f segment -segment_time 1 -reset_timestamps 1 @part%d.mp4")
        try ffmpeg("-i @sound.mp4 -c copy -use_editlist 0 @plain.mp4")
        try ffmpeg("-i @sound.mp4 -c copy -movflags negative_cts_offsets @negative.mp4")
        try ffmpeg("-itsoffset 1.5 -i @open.mp4 -i @sound.mp4 -map 0:v -map 1:a -c copy @empty-edit.mp4")
        try ffmpeg("-i @sound.mp4 -c copy -movflags empty_moov+frag_keyframe @fragments.mp4")
        try ffmpeg("\(moving) -vf select='mod(n\\,7)',setpts=PTS+gt(N\\,30)*9/TB -vsync vfr \(h264) @gaps.mkv")
        try ffmpeg("-i @gaps.mkv -c copy @gaps.mp4")
        try ffmpeg("-i @sound.mp4 -c copy -live 1 @live.mkv")
        try ffmpeg("-i @sound.mp4 -c copy @a.ts")
        try ffmpeg("-i @sound.mp4 -c copy @a.flv")
        let stream = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.ts")))
        try (stream + stream).write(to: URL(fileURLWithPath: folder.file("joined.ts")))
        try ffmpeg("\(moving) -c:v mpeg4 -bf 2 @a.avi")
        try ffmpeg("\(moving) \(h264) -flags +ilme+ildct -x264-params interlaced=1 @fields.mp4")
        try trim(folder.file("open.mp4"), to: folder.file("trimmed.mp4"))
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let account = try account(folder.file(name))
            #expect(account.isWhole, "\(name): \(account)")
            let isPromised = [".mp4", ".mov"].contains { name.hasSuffix($0) } && name != "fragments.mp4"
            #expect(account.promised == (isPromised ? account.given : nil), "\(name): \(account)")
        }
        // A part of a file is whole where the part is.
        for (name, options) in [
            ("sound.mp4", #", "start": 1, "duration": 0.7"#), ("sound.mkv", #", "start": 1, "duration": 0.7"#),
            ("open.mp4", #", "start": 1.3"#), ("gaps.mkv", #", "start": 1"#), ("sound.mp4", #", "duration": 60"#),
            ("joined.ts", #", "decode": false"#), ("sound.mp4", #", "decode": false"#),
            ("late.mp4", #", "decode": false"#),
            ("sound.mkv", #", "decode": false, "start": 1.5, "duration": 1"#),
        ] {
            let account = try account(folder.file(name), options)
            #expect(account.isWhole && account.given > 0, "\(name) \(options): \(account)")
        }
    }

    @Test(.needsFFmpeg) func seesWhatAFileLacks() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 100), "-f", "lavfi", "-i", "sine=d=5", "-c:v", "libx264",
            "-preset", "ultrafast", "-g", "20", "-pix_fmt", "yuv420p", "-c:a", "aac", "-movflags", "faststart",
            folder.file("a.mp4"))
        func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: folder.file(name))) }
        func write(_ data: Data, _ name: String) throws { try data.write(to: URL(fileURLWithPath: folder.file(name))) }
        try ClipMaker.ffmpeg("-i", folder.file("a.mp4"), "-c", "copy", folder.file("a.mkv"))
        try ClipMaker.ffmpeg("-i", folder.file("a.mp4"), "-c", "copy", folder.file("a.ts"))
        for ending in ["mp4", "mkv", "ts"] {
            let whole = try bytes("a.\(ending)")
            try write(whole.prefix(whole.count * 6 / 10), "cut.\(ending)")
            var hole = whole
            let gap = whole.count * 4 / 10..<whole.count * 65 / 100
            hole.replaceSubrange(gap, with: Data(count: gap.count))
            try write(hole, "hole.\(ending)")
        }
        for options in ["", #", "decode": false"#] {
            let cut = try account(folder.file("cut.mp4"), options)
            #expect(!cut.isWhole && cut.promised == 100 && cut.given < 70, "\(cut)")
            #expect(cut.shortfall?.contains("of 100 pictures in its index are missing") == true, "\(cut)")
            for name in ["cut.mkv", "hole.mkv"] {
                let account = try account(folder.file(name), options)
                #expect(account.shortfall != nil && account.given < 90, "\(name): \(account)")
            }
        }
        let hole = try account(folder.file("hole.mp4"))
        #expect(hole.damaged > 10 && hole.shortfall?.contains(" of 100 pictures of ") == true, "\(hole)")
        // A stream promises nothing; faults of the decoder count.
        let stream = try account(folder.file("hole.ts"))
        #expect(stream.shortfall == nil && stream.damaged > 0 && stream.promised == nil, "\(stream)")
        // What is damaged lies outside the part.
        for options in [#", "duration": 1"#, #", "decode": false, "duration": 1"#] {
            for name in ["cut.mp4", "hole.mp4", "cut.mkv", "hole.mkv"] {
                let account = try account(folder.file(name), options)
                #expect(account.isWhole && account.given == 25, "\(name) \(options): \(account)")
            }
        }
        let behind = try account(folder.file("hole.mp4"), #", "start": 3.2"#)
        #expect(behind.isWhole && behind.given == 20, "\(behind)")
    }
}
