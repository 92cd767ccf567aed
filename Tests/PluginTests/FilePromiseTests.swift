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
            #expect(MatroskaSegment(head: head)?.end == nil)
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
        for (number, flags) in [
            "empty_moov+frag_keyframe", "delay_moov+frag_keyframe+default_base_moof", "dash+frag_keyframe",
            "dash+frag_keyframe+global_sidx", "cmaf+frag_keyframe", "empty_moov+frag_every_frame",
            "empty_moov+frag_keyframe+separate_moof", "empty_moov+frag_keyframe+skip_trailer", "frag_keyframe",
        ].enumerated() {
            try ffmpeg("-i @sound.mp4 -c copy -movflags \(flags) @fragments\(number).mp4")
        }
        try ffmpeg("-i @sound.mp4 -c copy -movflags empty_moov -frag_duration 400000 @fragments-short.mp4")
        try ffmpeg(
            "-itsoffset 1.5 -i @open.mp4 -i @sound.mp4 -map 0:v -map 1:a -c copy -movflags delay_moov+frag_keyframe @fragments-late.mp4"
        )
        try ffmpeg("-ss 1.3 -i @sound.mp4 -c copy -movflags delay_moov+frag_keyframe @fragments-cut.mp4")
        try ffmpeg("-i @sound.mp4 -frames:v 1 -an -c:v copy -movflags empty_moov @fragments-one.mp4")
        try ffmpeg("-i @sound.mp4 -frames:v 1 -an -c:v copy @one.mkv")
        try ffmpeg("\(moving) -vf select='mod(n\\,7)',setpts=PTS+gt(N\\,30)*9/TB -vsync vfr \(h264) @gaps.mkv")
        try ffmpeg("-i @gaps.mkv -c copy @gaps.mp4")
        try ffmpeg("-i @gaps.mkv -c copy -movflags empty_moov+frag_every_frame @fragments-gaps.mp4")
        try ffmpeg("-i @sound.mp4 -c copy -cluster_time_limit 300 @clusters.mkv")
        try ffmpeg("-i @sound.mp4 -c copy -reserve_index_space 5000 -cues_to_front 1 @cues.mkv")
        let other = "-g 30 -cpu-used 8 -deadline realtime"
        try ffmpeg("\(moving) -c:v libvpx-vp9 \(other) @vp9.webm")
        try ffmpeg("\(moving) -c:v libvpx \(other) @vp8.webm")
        try ffmpeg("\(moving) -c:v libx265 -preset ultrafast -x265-params log-level=error:keyint=30 @hevc.mkv")
        try ffmpeg("-ss 1.4 -i @hevc.mkv -c copy @hevc-late.mkv")
        try ffmpeg("-i @hevc.mkv -c copy -movflags empty_moov+frag_keyframe @fragments-hevc.mp4")
        if let mkvmerge = try Tool.optional("mkvmerge") {
            for (name, from) in [("merged.mkv", "sound.mp4"), ("merged.webm", "vp9.webm")] {
                try Tool.run(mkvmerge, ["-q", "-o", folder.file(name), folder.file(from)])
            }
        }
        if let gstreamer = try Tool.optional("gst-launch-1.0") {
            for (name, muxer) in [
                ("fragments-gst.mp4", "mp4mux fragment-duration=500"),
                ("fragments-gst-streamable.mp4", "mp4mux fragment-duration=500 streamable=true"),
                ("gst.mkv", "matroskamux"), ("gst-streamable.mkv", "matroskamux streamable=true"),
            ] {
                try Tool.run(
                    gstreamer,
                    ["-q", "filesrc", "location=\(folder.file("open.mp4"))", "!", "qtdemux", "!", "h264parse", "!"]
                        + muxer.split(separator: " ").map(String.init)
                        + ["!", "filesink", "location=\(folder.file(name))"])
            }
        }
        try ffmpeg("-i @sound.mp4 -c copy -live 1 @live.mkv")
        try ffmpeg("-i @sound.mp4 -c copy @a.ts")
        try ffmpeg("-i @sound.mp4 -c copy @a.flv")
        let stream = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.ts")))
        try (stream + stream).write(to: URL(fileURLWithPath: folder.file("joined.ts")))
        try ffmpeg("\(moving) -c:v mpeg4 -bf 2 @a.avi")
        // The numbers of its headers were never written.
        try ffmpeg("\(moving) -c:v mjpeg -seekable 0 @piped.avi")
        try ffmpeg("-i @sound.mp4 -c:v mjpeg -c:a pcm_s16le -seekable 0 @piped-sound.avi")
        try ffmpeg("\(moving) \(h264) -flags +ilme+ildct -x264-params interlaced=1 @fields.mp4")
        try trim(folder.file("open.mp4"), to: folder.file("trimmed.mp4"))
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let account = try account(folder.file(name))
            #expect(account.isWhole, "\(name): \(account)")
            let isPromised =
                [".mp4", ".mov"].contains { name.hasSuffix($0) }
                && (!name.hasPrefix("fragments") || name == "fragments8.mp4")
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

    // MARK: Fragments

    private func fragments(
        _ all: [(number: UInt32, begin: Int64)], length: Int64 = 0, places: [Int64] = []
    ) -> [FileGap] {
        // Each lasts 100 ticks of 1 ms, and lies at its number times 1000.
        let items = all.map {
            MovieFragments.Item.fragment(
                number: $0.number,
                pictures: .init(offset: Int64($0.number) * 1000, begin: $0.begin, end: $0.begin + 100, rest: 20))
        }
        return MovieFragments.gaps([.header] + items, length: length, places: places, timeBase: TimeBase(1, 1000))
    }

    @Test func aFragmentIsMissingWhereItsNumberAndItsTimeAre() {
        func gap(_ begin: Double?, _ end: Double?) -> [FileGap] {
            [FileGap(begin: begin.map { MediaTime(seconds: $0) }, end: end.map { MediaTime(seconds: $0) })]
        }
        #expect(fragments([(1, 0), (2, 100), (3, 200)]) == [])
        #expect(fragments([(1, 0), (2, 100), (4, 300)]) == gap(0.2, 0.3))
        #expect(fragments([(7, 0), (9, 200)]) == gap(0.1, 0.2))
        // A pause, other numbers, one number for all, a second recording.
        #expect(fragments([(1, 0), (2, 5000), (3, 5100)]) == [])
        #expect(fragments([(1, 0), (2, 100), (9, 200)]) == [])
        #expect(fragments([(1, 0), (3, 100), (5, 900), (7, 1000)]) == [])
        #expect(fragments([(1, 0), (1, 100), (1, 900)]) == [])
        #expect(fragments([(8, 0), (9, 100), (1, 900), (2, 1000)]) == [])
        #expect(fragments([]) == [])
        // Indexes.
        #expect(fragments([(1, 0), (2, 100)], length: 400) == [])
        #expect(fragments([(1, 0), (2, 100)], length: 1000) == gap(0.2, nil))
        #expect(fragments([(1, 0), (2, 100)], places: [1000, 2000]) == [])
        #expect(fragments([(1, 0), (2, 100)], places: [1000, 2000, 3000]) == gap(0.2, nil))
        #expect(fragments([(1, 0), (2, 100)], places: [1010, 2010, 3010]) == [])
    }

    private func boxes(_ data: Data) -> [(type: String, range: Range<Int>)] {
        var (all, offset): ([(String, Range<Int>)], Int) = ([], 0)
        while offset + 8 <= data.count {
            let size = data[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            guard size >= 8 else { break }
            all.append((String(decoding: data[offset + 4..<offset + 8], as: UTF8.self), offset..<offset + size))
            offset += size
        }
        return all
    }

    /// What begins with a keyframe that cannot be decoded lacks all pictures up to the next one; a stream that was cut
    /// begins anywhere.
    @Test(.needsFFmpeg, arguments: [("a.mkv", false), ("a.mp4", false), ("a.ts", true)])
    func missesWhatADamagedFirstKeyframeCosts(name: String, isForgiven: Bool) throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 60), "-c:v", "libx264", "-preset", "ultrafast", "-g", "30",
            "-pix_fmt", "yuv420p", "-movflags", "empty_moov+frag_keyframe", folder.file("w.mkv"))
        try ClipMaker.ffmpeg(
            "-i", folder.file("w.mkv"), "-c", "copy", "-movflags", "empty_moov+frag_keyframe", folder.file(name))
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file(name)))
        if isForgiven {
            bytes.removeFirst(bytes.count / 4 / 188 * 188)
        } else {
            let first = try #require(RecorderStreams.packets(of: folder.file(name)).packets.first?.bytes)
            let range = try #require(bytes.range(of: Data(first.suffix(first.count / 2))))
            bytes.replaceSubrange(
                range.lowerBound - first.count / 2 + 8..<range.upperBound,
                with: Data(count: range.count + first.count / 2 - 8))
        }
        try bytes.write(to: URL(fileURLWithPath: folder.file(name)))
        let account = try account(folder.file(name))
        #expect(account.isWhole == isForgiven, "\(account)")
    }

    /// One fragment of the middle or the last one: overwritten, cut out, or its header damaged.
    @Test(
        .needsFFmpeg,
        arguments: [
            "empty_moov+frag_keyframe", "dash+frag_keyframe", "dash+frag_keyframe+global_sidx", "frag_keyframe",
        ])
    func seesThatAFragmentIsMissing(flags: String) throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 100), "-f", "lavfi", "-i", "sine=d=4", "-c:v", "libx264",
            "-preset", "ultrafast", "-g", "20", "-pix_fmt", "yuv420p", "-c:a", "aac", "-movflags", flags,
            folder.file("a.mp4"))
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4")))
        let all = boxes(whole)
        let headers = all.indices.filter { all[$0].type == "moof" }
        func damage(_ index: Int) -> [(name: String, data: Data)] {
            let (moof, mdat) = (all[headers[index]].range, all[headers[index] + 1].range)
            func replacing(_ range: Range<Int>, _ bytes: Data) -> Data {
                var data = whole
                data.replaceSubrange(range, with: bytes)
                return data
            }
            let noise = Data(moof.map { UInt8(truncatingIfNeeded: $0 &* 197 &+ 131) })
            return [
                ("zeroed", replacing(moof, Data(count: moof.count))),
                ("overwritten", replacing(moof, noise)),
                ("emptied", replacing(moof.lowerBound + 8..<moof.upperBound, Data(count: moof.count - 8))),
                ("gone", replacing(moof.lowerBound..<mdat.upperBound, Data(count: mdat.upperBound - moof.lowerBound))),
                ("cut", replacing(moof.lowerBound..<mdat.upperBound, Data())),
            ]
        }
        for (index, options) in [(2, ""), (2, #", "decode": false"#), (headers.count - 1, "")] {
            for (name, data) in damage(index) {
                let path = folder.file("\(name).mp4")
                try data.write(to: URL(fileURLWithPath: path))
                let account = try account(path, options)
                #expect(
                    account.shortfall.map { $0.contains(" lacks a part ") || $0.contains(" are missing") } == true,
                    "\(flags) \(name) \(index): \(account)")
            }
        }
        let path = folder.file("gone.mp4")
        try damage(3)[0].data.write(to: URL(fileURLWithPath: path))
        let before = try account(path, #", "duration": 1"#)
        #expect(before.isWhole && before.given == 25, "\(before)")
    }

    // MARK: Clusters

    /// Decoders of these codecs say nothing where pictures are missing between others.
    @Test(
        .needsFFmpeg,
        arguments: [
            ["libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=200"],
            ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "200"],
            ["libsvtav1", "-preset", "12", "-g", "200"], ["libx264", "-preset", "ultrafast", "-g", "200"],
        ])
    func seesHolesBetweenTheKeyframesOfEveryCodec(encoder: [String]) throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.mkv")
        try ClipMaker.ffmpeg(
            arguments: ["-f", "lavfi", "-i", ClipMaker.moving(count: 100), "-pix_fmt", "yuv420p", "-c:v"] + encoder
                + ["-cluster_time_limit", "500", path])
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        let good = try account(path)
        #expect(good.isWhole && good.given == 100, "\(good)")
        var clusters: [Int] = []
        var rest = whole[...]
        while let found = rest.range(of: Data([0x1f, 0x43, 0xb6, 0x75])) {
            clusters.append(found.lowerBound)
            rest = whole[found.upperBound...]
        }
        // The first place is that in the seek head's list, if there.
        let middle = clusters.count / 2
        let cluster = clusters[middle]..<clusters[middle + 1]
        for (name, range) in [
            ("cluster", cluster), ("head", cluster.lowerBound..<cluster.lowerBound + 12),
            ("blocks", cluster.lowerBound + 20..<cluster.upperBound - 20),
            ("across", cluster.upperBound - 100..<cluster.upperBound + 100),
        ] {
            var data = whole
            data.replaceSubrange(range, with: Data(count: range.count))
            try data.write(to: URL(fileURLWithPath: path))
            let hole = try account(path)
            #expect(hole.shortfall != nil && !hole.isWhole, "\(encoder[0]) \(name): \(hole)")
            let before = try account(path, #", "duration": 1"#)
            #expect(before.isWhole && before.given == 25, "\(encoder[0]) \(name): \(before)")
        }
        var data = whole
        data.removeSubrange(cluster)
        try data.write(to: URL(fileURLWithPath: path))
        #expect(try account(path).shortfall != nil, "\(encoder[0])")
    }

    // MARK: Slow pictures

    /// libavformat looks at the first five seconds of a file, and needs more than one picture.
    @Test(.needsFFmpeg, arguments: ["mkv", "webm", "mp4", "ts", "avi"])
    func playsAFileWithAPictureEachMinute(ending: String) throws {
        let folder = try ScratchFolder()
        let encoder = ending == "webm" ? ["libvpx-vp9", "-deadline", "realtime"] : ["libx264", "-preset", "ultrafast"]
        for seconds in [3, 60] {
            let path = folder.file("\(seconds).\(ending)")
            try ClipMaker.ffmpeg(
                arguments: [
                    "-f", "lavfi", "-i", "testsrc2=s=64x64:r=1/\(seconds):d=\(seconds * 12)", "-pix_fmt", "yuv420p",
                    "-c:v",
                ]
                    + encoder + [path])
            let account = try account(path)
            #expect(account.isWhole && account.given == 12, "\(account)")
        }
    }
}
