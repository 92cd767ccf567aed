// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// Several files as one input: `"path": ["a.mp4", "b.mp4"]`.
@Suite struct FileListTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func make(_ name: String, size: String = "160x120", rate: Int = 25, count: Int = 50, _ arguments: String...)
        throws
    {
        try ClipMaker.ffmpeg(
            arguments: ["-f", "lavfi", "-i", ClipMaker.moving(size, rate: rate, count: count)] + arguments
                + ["-pix_fmt", "yuv420p", folder.file(name)])
    }

    private func paths(_ names: String...) -> String {
        "[" + names.map { "\"\(folder.file($0))\"" }.joined(separator: ", ") + "]"
    }

    private func play(_ paths: String, options: String = "", atMost most: Int = .max) throws -> (
        source: StageDriver<FileSource>, frames: [(pts: MediaTime, duration: MediaTime, hash: UInt64)], events: [Event]
    ) {
        let source = try StageDriver(FileSource.self, options: #"{ "path": \#(paths)\#(options) }"#)
        var frames: [(pts: MediaTime, duration: MediaTime, hash: UInt64)] = []
        var isOver = false
        while !isOver, frames.count < most {
            isOver = try source.produce() == .ended
            while let frame = source.takeFrame() { frames.append((frame.pts, frame.duration, ClipMaker.hash(frame))) }
        }
        try source.stop()
        return (source, frames, source.takeEvents())
    }

    /// One after the other without a gap, each as it is alone.
    @Test(.needsFFmpeg) func playsFilesWithoutAGap() throws {
        try make("a.mp4", "-c:v", "libx264")
        try make("b.mkv", count: 30, "-c:v", "mpeg4")
        try make("c.ts", count: 20, "-c:v", "libx264")
        let (_, frames, events) = try play(paths("a.mp4", "b.mkv", "c.ts"))
        #expect(frames.count == 100)
        #expect(frames.map(\.pts) == (0..<100).map { MediaTime(nanoseconds: Int64($0) * 40_000_000) })
        let alone = try ["a.mp4", "b.mkv", "c.ts"].flatMap { try ClipMaker.play(folder.file($0)).pictures.map(\.hash) }
        #expect(frames.map(\.hash) == alone)
        #expect(!events.contains { $0.level == .warning }, "\(events.map(\.text))")
    }

    @Test(.needsFFmpeg) func convertsToTheFirstAndSaysSo() throws {
        try make("a.mp4", "-c:v", "libx264")
        try make("b.mp4", size: "320x180", rate: 50, count: 40, "-c:v", "libx264")
        let (source, frames, events) = try play(paths("a.mp4", "b.mp4"))
        #expect(source.outputFormat?.video.map { [$0.width, $0.height] } == [160, 120])
        #expect(source.outputFormat?.video?.frameRate.isZero == true, "the rate is not constant")
        #expect(frames.count == 90)
        #expect(frames.last?.pts == MediaTime(nanoseconds: 2_000_000_000 + 39 * 20_000_000))
        let said = events.filter { $0.name == "note" }.map(\.text)
        #expect(said.count == 1 && said[0].contains("b.mp4' (yuv420p 320x180"), "\(said)")
    }

    @Test(.needsFFmpeg) func warnsOfPicturesThatLieOtherwise() throws {
        try make("a.mp4", count: 5, "-c:v", "libx264")
        try ClipMaker.ffmpeg(
            "-i", folder.file("a.mp4"), "-c", "copy", "-metadata:s:v:0", "rotate=90", folder.file("turned.mp4"))
        let events = try play(paths("a.mp4", "turned.mp4")).events
        #expect(
            events.contains {
                $0.level == .warning && $0.text.contains("put a 'crop-orient' with \"anyOrientation\": true")
            },
            "\(events.map(\.text))")
        // A recording of their units has one orientation too.
        let units = try StageDriver(
            FileSource.self, options: #"{ "path": \#(paths("a.mp4", "turned.mp4")), "decode": false }"#)
        let said = units.takeEvents().filter { $0.level == .warning }.map(\.text)
        #expect(said.count == 1 && said[0].contains("a recording has one orientation"), "\(said)")
        try units.stop()
    }

    @Test(.needsFFmpeg) func warnsOfPixelsOfAnotherShape() throws {
        try make("a.mp4", count: 5, "-c:v", "libx264")
        try ClipMaker.ffmpeg("-i", folder.file("a.mp4"), "-c", "copy", "-aspect", "16:9", folder.file("wide.mp4"))
        let units = try StageDriver(
            FileSource.self, options: #"{ "path": \#(paths("a.mp4", "wide.mp4")), "decode": false }"#)
        let said = units.takeEvents().filter { $0.level == .warning }.map(\.text)
        #expect(said.count == 1 && said[0].contains("wide.mp4' have another shape (4:3)"), "\(said)")
        try units.stop()
    }

    @Test(.needsFFmpeg) func warnsOfOtherBrightness() throws {
        try make("sdr.mp4", count: 5, "-c:v", "libx264")
        try make("hdr.mp4", count: 5, "-c:v", "libx264", "-color_trc", "smpte2084", "-color_primaries", "bt2020")
        for names in [["sdr.mp4", "hdr.mp4"], ["hdr.mp4", "sdr.mp4"]] {
            let said = try play(paths(names[0], names[1])).events.filter { $0.level == .warning }.map(\.text)
            #expect(
                said.count == 1
                    && said[0].contains(
                        "'\(folder.file(names[1]))' (\(names[1] == "hdr.mp4" ? "HDR with PQ" : "SDR")) is not converted"
                    ), "\(said)")
        }
    }

    /// The tags of the first are kept, with the chapters of all, and what is left out of the others is said.
    @Test(.needsFFmpeg) func keepsTheTagsOfTheFirst() throws {
        try clip("a.mp4", seconds: 2, sound: 2, "-c:a", "aac", "-metadata", "title=One", "-metadata", "comment=Both")
        try clip("b.mp4", seconds: 2, sound: 2, "-c:a", "aac", "-metadata", "title=Two", "-metadata", "comment=Both")
        try Data(";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=Part\n".utf8).write(
            to: URL(filePath: folder.file("chapters")))
        try ClipMaker.ffmpeg(
            "-i", folder.file("b.mp4"), "-i", folder.file("chapters"), "-map_chapters", "1", "-c", "copy",
            folder.file("c.mp4"))
        let source = try StageDriver(FileSource.self, options: #"{ "path": \#(paths("a.mp4", "c.mp4")) }"#)
        let said = source.takeEvents().filter { $0.name == "note" }.map(\.text)
        #expect(said.count == 1 && said[0].hasSuffix("of the other files what differs is left out: title."), "\(said)")
        try source.stop()
        let list = try FileList(source.stage.options, StageContext(stageID: "clip"))
        let tags = try #require(list.tags())
        #expect(tags.tags["title"] == "One" && tags.tags["comment"] == "Both")
        #expect(tags.chapters.count == 1)
        #expect(tags.chapters.first.map { abs($0.begin.seconds - 2) < 0.05 && $0.tags["title"] == "Part" } == true)
    }

    @Test(.needsFFmpeg) func loopsTheWholeList() throws {
        try make("a.mp4", count: 10, "-c:v", "libx264")
        try make("b.mp4", count: 5, "-c:v", "libx264")
        let (_, frames, _) = try play(paths("a.mp4", "b.mp4"), options: #", "loop": true"#, atMost: 50)
        #expect(frames.prefix(50).map(\.pts) == (0..<50).map { MediaTime(nanoseconds: Int64($0) * 40_000_000) })
        #expect(frames.prefix(15).map(\.hash) == frames.dropFirst(15).prefix(15).map(\.hash))
    }

    @Test(.needsFFmpeg) func namesWhatIsMissing() throws {
        try make("a.mp4", count: 5, "-c:v", "libx264")
        #expect {
            _ = try play(paths("a.mp4", "no.mp4"))
        } throws: {
            let fault = FrameHostError.wrap($0)
            return fault.place.description.contains("path[1]") && fault.what.contains("no.mp4' does not exist")
        }
        #expect {
            _ = try play("[]")
        } throws: {
            "\($0)".contains("a list of files must have from 1 to 100, but has 0")
        }
        #expect {
            _ = try play(paths("a.mp4", "a.mp4"), options: #", "start": 1"#)
        } throws: {
            "\($0)".contains("'start' and 'duration' are for a single file")
        }
    }

    @Test(.needsFFmpeg) func countsAllOfThem() throws {
        try make("a.mp4", "-c:v", "libx264")
        try make("b.mp4", count: 30, "-c:v", "libx264")
        let (source, _, _) = try play(paths("a.mp4", "b.mp4"))
        #expect(source.stage.context.inputAccount?.given == 80 && source.stage.context.inputAccount?.promised == 80)
        #expect(source.stage.context.inputAccount?.isWhole == true)
    }

    // MARK: Undecoded

    @Test(.needsFFmpeg) func namesTheCodecsThatDiffer() throws {
        try make("a.mov", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p")
        try make("b.mp4", "-c:v", "libx264")
        let error = #expect(throws: FrameHostErrors.self) {
            _ = try StageDriver(
                FileSource.self, options: #"{ "path": \#(paths("a.mov", "b.mp4")), "decode": false }"#)
        }
        #expect(
            error?.description.contains(
                "the pictures of '\(folder.file("b.mp4"))' are H.264, but those of '\(folder.file("a.mov"))' are MJPEG, so they cannot go on behind these as they are"
            ) == true, "\(error?.description ?? "")")
    }

    @Test(.needsFFmpeg) func passesOnUnitsOfOneKind() throws {
        try make("a.mp4", "-c:v", "libx264", "-bf", "2", "-g", "20")
        try make("b.mp4", count: 30, "-c:v", "libx264", "-bf", "2", "-g", "20")
        try make("other.mp4", size: "320x180", "-c:v", "libx264")
        let source = try StageDriver(
            FileSource.self, options: #"{ "path": \#(paths("a.mp4", "b.mp4")), "decode": false }"#)
        var units: [(pts: MediaTime, dts: MediaTime, isKeyframe: Bool)] = []
        while try source.produce() == .more {
            while let unit = source.takeAccessUnit() { units.append((unit.pts, unit.dts, unit.isKeyframe)) }
        }
        #expect(units.count == 80)
        #expect(units.map(\.pts).sorted() == (0..<80).map { MediaTime(nanoseconds: Int64($0) * 40_000_000) })
        #expect(zip(units.dropFirst(), units).allSatisfy { $0.dts > $1.dts } && units.allSatisfy { $0.dts <= $0.pts })
        #expect(units[50].isKeyframe)
        try source.stop()
        #expect {
            _ = try StageDriver(
                FileSource.self, options: #"{ "path": \#(paths("a.mp4", "other.mp4")), "decode": false }"#)
        } throws: {
            let fault = FrameHostError.wrap($0)
            return fault.place.description.contains("path[1]") && fault.remedy.contains("Leave 'decode' out")
        }
    }

    /// What an edit list hides can only be hidden before the first picture of all.
    @Test(.needsFFmpeg) func refusesHiddenPicturesInTheMiddle() throws {
        try make("a.mp4", count: 60, "-c:v", "libx264", "-g", "60")
        try ClipMaker.ffmpeg("-ss", "1", "-i", folder.file("a.mp4"), "-c", "copy", folder.file("cut.mp4"))
        let begun = try StageDriver(
            FileSource.self, options: #"{ "path": \#(paths("cut.mp4", "a.mp4")), "decode": false }"#)
        try begun.stop()
        #expect {
            _ = try StageDriver(
                FileSource.self, options: #"{ "path": \#(paths("cut.mp4", "cut.mp4")), "decode": false }"#)
        } throws: {
            let fault = FrameHostError.wrap($0)
            return fault.place.description.contains("path[1]")
                && fault.what.contains("of its 60 pictures by an edit list")
        }
    }

    // MARK: Sound

    /// A beep at the begin of each second, and the length of the sound.
    private func clip(_ name: String, seconds: Double, sound: Double, _ arguments: String...) throws {
        try ClipMaker.ffmpeg(
            arguments: [
                "-f", "lavfi", "-i", ClipMaker.moving(count: Int(seconds * 25)), "-f", "lavfi", "-i",
                "aevalsrc='if(lt(mod(t\\,1)\\,0.1)\\,0.5*sin(2*PI*1000*t)\\,0)':s=48000:d=\(sound)", "-pix_fmt",
                "yuv420p",
                "-c:v", "libx264",
            ] + arguments + [folder.file(name)])
    }

    private func beeps(_ paths: String) throws -> (times: [Double], end: Double) {
        let source = try StageDriver(FileSound.self, options: #"{ "path": \#(paths) }"#)
        let rate = try #require(source.outputFormat?.audio?.sampleRate)
        let channels = try #require(source.outputFormat?.audio?.channelCount)
        var (times, lastLoud, end): ([Double], Double, Double) = ([], -1, 0)
        var isOver = false
        while !isOver {
            isOver = try source.produce() == .ended
            while let block = source.takeAudioBlock() {
                #expect(block.pts.seconds > end - 0.0005, "blocks do not overlap")
                end = (block.pts + block.duration).seconds
                block.withSamples { samples in
                    for index in stride(from: 0, to: samples.count, by: channels) where abs(samples[index]) > 0.1 {
                        let time = block.pts.seconds + Double(index / channels) / Double(rate)
                        if time > lastLoud + 0.3 { times.append(time) }
                        lastLoud = time
                    }
                }
            }
        }
        try source.stop()
        return (times, end)
    }

    /// Sound stays with its pictures over files, of whatever codec, and where it is shorter or longer than they are.
    @Test(.needsFFmpeg) func soundGoesAlong() throws {
        try clip("a.mp4", seconds: 2, sound: 2, "-c:a", "aac")
        try clip("b.mkv", seconds: 3, sound: 1.5, "-c:a", "libopus")
        try clip("c.mov", seconds: 1, sound: 3, "-c:a", "pcm_s16le", "-ar", "44100", "-ac", "2")
        try clip("d.mp4", seconds: 2, sound: 2, "-c:a", "aac")
        let list = paths("a.mp4", "b.mkv", "c.mov", "d.mp4")
        let (times, end) = try beeps(list)
        // Of b only the first two seconds have sound; c is as long as its sound.
        let expected = [0, 1, 2, 3, 5, 6, 7, 8, 9].map(Double.init)
        #expect(times.count == expected.count, "\(times)")
        #expect(zip(times, expected).allSatisfy { abs($0 - $1) < 0.010 }, "\(times)")
        #expect(abs(end - 10) < 0.1, "\(end)")
        let frames = try play(list).frames
        #expect(frames.count == 50 + 75 + 25 + 50)
        for (index, seconds) in [(0, 0.0), (50, 2), (125, 5), (150, 8)] {
            #expect(abs(frames[index].pts.seconds - seconds) < 0.001, "\(index): \(frames[index].pts.seconds)")
        }
    }

    @Test(.needsFFmpeg) func offersSoundOfOneKindToARecorder() throws {
        try clip("a.mp4", seconds: 2, sound: 2, "-c:a", "aac")
        try clip("b.mp4", seconds: 3, sound: 3, "-c:a", "aac")
        try clip("c.mp4", seconds: 1, sound: 1, "-c:a", "aac", "-ar", "32000")
        let list = try FileList(
            try StageDriver(FileSource.self, options: #"{ "path": \#(paths("a.mp4", "b.mp4")) }"#).stage.options,
            StageContext(stageID: "clip"))
        let reader = try #require(list.carriedTracks()).open(track: 0)
        var packets: [AudioPacket] = []
        while let packet = try reader.next() { packets.append(packet) }
        #expect(zip(packets.dropFirst(), packets).allSatisfy { $0.dts > $1.dts })
        #expect(packets.last.map { abs(Double($0.pts + $0.duration) / 48_000 - 5) < 0.1 } == true)
        // At most one of their 21 ms is missing or twice at the joint.
        #expect(abs(packets.count - 5 * 48_000 / 1024) <= 3, "\(packets.count)")
        let mixed = try play(paths("a.mp4", "c.mp4"))
        #expect(mixed.events.contains { $0.name == "note" && $0.text.contains("c.mp4' differs from that of") })
    }

    /// Headers that are wrong move nothing: files are as long as what is in them.
    @Test(.needsFFmpeg, arguments: [1.0, 60.0]) func goesByWhatIsInTheFiles(length: Double) throws {
        for name in ["a.flv", "b.flv"] { try clip(name, seconds: 3, sound: 3, "-c:a", "aac", "-ar", "44100") }
        var bytes = try Data(contentsOf: URL(filePath: folder.file("a.flv")))
        let place = try #require(bytes.range(of: Data("duration".utf8))).upperBound + 1
        bytes.replaceSubrange(place..<place + 8, with: withUnsafeBytes(of: length.bitPattern.bigEndian) { Data($0) })
        try bytes.write(to: URL(filePath: folder.file("a.flv")))
        let (times, end) = try beeps(paths("a.flv", "b.flv"))
        #expect(times.count == 6 && zip(times, 0...).allSatisfy { abs($0 - Double($1)) < 0.1 }, "\(times)")
        #expect(abs(end - 6) < 0.2, "\(end)")
        let frames = try play(paths("a.flv", "b.flv")).frames
        #expect(frames.count == 150)
        #expect(frames.count > 75 && abs(frames[75].pts.seconds - (times.count > 3 ? times[3] : 0)) < 0.06)
    }

    /// A file that grows while it is played is as long as it was, for pictures and sound.
    @Test(.needsFFmpeg, arguments: [true, false]) func leavesOutWhatIsWrittenMeanwhile(isDecoded: Bool) throws {
        try clip("a.ts", seconds: 4, sound: 4, "-c:a", "aac", "-g", "25")
        try clip("b.ts", seconds: 1, sound: 1, "-c:a", "aac", "-g", "25")
        let whole = try Data(contentsOf: URL(filePath: folder.file("a.ts")))
        try whole.prefix(whole.count / 2 / 188 * 188).write(to: URL(filePath: folder.file("a.ts")))
        let source = try StageDriver(
            FileSource.self, options: #"{ "path": \#(paths("a.ts", "b.ts")), "decode": \#(isDecoded) }"#)
        let file = try FileHandle(forWritingTo: URL(filePath: folder.file("a.ts")))
        try file.seekToEnd()
        try file.write(contentsOf: whole.dropFirst(whole.count / 2 / 188 * 188))
        try file.close()
        var times: [MediaTime] = []
        var isOver = false
        while !isOver {
            isOver = try source.produce() == .ended
            while let frame = source.takeFrame() { times.append(frame.pts) }
            while let unit = source.takeAccessUnit() { times.append(unit.pts) }
        }
        try source.stop()
        let events = source.takeEvents()
        #expect(events.contains { $0.name == "file-grew" && $0.level == .warning }, "\(events.map(\.text))")
        #expect(times.max().map { $0.seconds < 3.8 } == true && times.count < 100, "\(times.count)")
    }

    /// Songs follow each other without a gap, and need no pictures.
    @Test(.needsFFmpeg, arguments: ["mp3", "m4a", "flac", "wav", "opus"]) func playsSongs(ending: String) throws {
        for name in ["a", "b"] {
            try ClipMaker.ffmpeg(
                arguments: [
                    "-f", "lavfi", "-i",
                    "aevalsrc='if(lt(mod(t\\,1)\\,0.1)\\,0.5*sin(2*PI*1000*t)\\,0)':s=48000:d=2",
                    folder.file("\(name).\(ending)"),
                ])
        }
        let (times, end) = try beeps(paths("a.\(ending)", "b.\(ending)"))
        #expect(times.count == 4 && zip(times, 0...).allSatisfy { abs($0 - Double($1)) < 0.045 }, "\(times)")
        #expect(abs(end - 4) < 0.1, "\(end)")
        guard ["mp3", "m4a", "opus"].contains(ending) else { return }
        let source = try StageDriver(
            FileSound.self, options: #"{ "path": \#(paths("a.\(ending)", "b.\(ending)")), "decode": false }"#)
        var last: (begin: Double, end: Double) = (-1, 0)
        while try source.produce() == .more {
            while let unit = source.takeAccessUnit() {
                #expect(unit.pts.seconds > last.begin)
                last = (unit.pts.seconds, (unit.pts + unit.duration).seconds)
            }
        }
        #expect(abs(last.end - 4) < 0.12 && source.stage.context.inputAccount?.isWhole == true, "\(last)")
        try source.stop()
    }
}
