// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Clips that are hard to play right, through the file chain: every frame, every PTS, colour, aspect and orientation
/// are the clip's.
@Suite struct AwkwardClipTests {
    /// A clip and how ffmpeg makes it.
    struct Clip: CustomTestStringConvertible, Sendable {
        var name: String
        var source = ClipWorkshop.moving()
        var options = ""
        var testDescription: String { name }
    }

    private static let bt709 = "-color_primaries bt709 -color_trc bt709 -colorspace bt709"

    static let clips = [
        Clip(
            name: "gap.mp4",
            source: ClipWorkshop.moving(count: 50) + ",setpts=PTS+if(gte(N\\,20)\\,2/TB\\,0)+mod(N\\,3)*0.011/TB",
            options: "-vsync vfr -enc_time_base 1:90000 -video_track_timescale 90000"),
        Clip(
            name: "gap.mkv", source: ClipWorkshop.moving(count: 50) + ",setpts=PTS+if(gte(N\\,20)\\,2/TB\\,0)",
            options: "-vsync vfr"),
        Clip(name: "10-bit.mp4", options: "-pix_fmt yuv420p10le"),
        Clip(name: "4-4-4.mp4", options: "-pix_fmt yuv444p"),
        Clip(name: "4-2-2 10-bit.mkv", options: "-pix_fmt yuv422p10le"),
        Clip(name: "grey.mkv", options: "-c:v ffv1 -pix_fmt gray"),
        Clip(
            name: "full-range.mp4", source: ClipWorkshop.moving() + ",scale=out_range=full",
            options: "-color_range pc " + bt709),
        Clip(name: "bt2020.mkv", options: "-color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc"),
        // The bitstream alone says it.
        Clip(
            name: "tags-in-stream.ts",
            options: "-x264-params colorprim=smpte170m:transfer=smpte170m:colormatrix=smpte170m:fullrange=on"),
        Clip(name: "tags-in-stream.mp4", options: "-movflags -write_colr " + bt709),
        Clip(
            name: "interlaced.mp4",
            source: ClipWorkshop.moving(rate: 50, count: 50) + ",tinterlace=interleave_top,setfield=tff",
            options: "-flags +ildct+ilme -x264-params tff=1"),
        Clip(name: "16x16.mp4", source: ClipWorkshop.moving("16x16")),
        Clip(name: "uhd.mp4", source: ClipWorkshop.moving("3840x2160", count: 4), options: "-preset ultrafast"),
        Clip(name: "one frame.mp4", source: ClipWorkshop.moving(count: 1)),
        Clip(name: "1 fps.mp4", source: ClipWorkshop.moving(rate: 1, count: 5)),
        Clip(name: "120 fps.mp4", source: ClipWorkshop.moving(rate: 120, count: 60)),
        Clip(name: "29.97 fps.mp4", source: "testsrc2=size=320x240:rate=30000/1001,trim=end_frame=30"),
        Clip(name: "begins at 5 s.mp4", options: "-output_ts_offset 5"),
        Clip(name: "begins at 5 s.mkv", options: "-output_ts_offset 5"),
        Clip(name: "begins at 5 s.ts", options: "-output_ts_offset 5"),
        Clip(name: "b-frames.mp4", source: ClipWorkshop.moving(count: 50), options: "-bf 4 -g 12"),
        Clip(
            name: "open gop.mkv", source: ClipWorkshop.moving(count: 50),
            options: "-bf 3 -x264-params open-gop=1:keyint=12"),
        Clip(name: "fragmented.mp4", options: "-bf 3 -g 5 -movflags frag_keyframe+empty_moov+default_base_moof"),
        Clip(name: "annex b.h264", options: "-bf 3"),
        Clip(name: "stream.ts", options: "-bf 3"),
        Clip(name: "aspect.mp4", source: ClipWorkshop.moving() + ",setsar=16/11"),
        Clip(name: "aspect.mkv", source: ClipWorkshop.moving() + ",setsar=16/11"),
        Clip(name: "ein Käse & 日本 'q' %03d :1.mp4"),
        Clip(name: "hevc.mp4", options: "-c:v libx265 -preset ultrafast -x265-params log-level=none"),
        Clip(name: "vp9.webm", options: "-c:v libvpx-vp9 -deadline realtime -cpu-used 8"),
        Clip(name: "vp8.webm", options: "-c:v libvpx -deadline realtime -cpu-used 8"),
        Clip(name: "mpeg-2.mpg", options: "-c:v mpeg2video"),
        Clip(name: "mpeg-4.avi", options: "-c:v mpeg4"),
        Clip(name: "motion jpeg.avi", options: "-c:v mjpeg -pix_fmt yuvj420p"),
        Clip(name: "prores.mov", options: "-c:v prores_ks -pix_fmt yuv422p10le"),
        Clip(name: "theora.ogv", options: "-c:v libtheora"),
        Clip(name: "flash.flv", options: "-bf 2"),
    ]

    @Test(.needs(.ffmpeg), .needs(.ffprobe), arguments: clips) func keepsEverything(clip: Clip) throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.make(clip.name, clip.source, clip.options)
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let (before, after) = (try ClipProbe(path), try ClipProbe(result))
        let isStream = ["ts", "mpg", "flv", "ogv"].contains { clip.name.hasSuffix("." + $0) }
        try Self.expectSame(before, after, fromZero: isStream)
        #expect(after.size == before.size)
        #expect(after.tags == before.tags)
        #expect(after.aspect == before.aspect)
        #expect(after.matrix == before.matrix)
    }

    /// As many frames, each at its time, to the tick of the coarser file.
    ///
    /// - Parameter fromZero: The file is a stream that was written down, whose clock begins anywhere.
    static func expectSame(_ before: ClipProbe, _ after: ClipProbe, fromZero: Bool = false) throws {
        let begin = fromZero ? before.times.lazy.compactMap { $0 }.min() ?? 0 : 0
        try #require(!before.times.isEmpty)
        try #require(after.times.count == before.times.count)
        let tolerance = max(before.tick, after.tick) / 2 + 1e-6
        var wrong: [String] = []
        for (old, new) in zip(before.times, after.times) {
            // A stream without times has none to compare.
            if let old, abs((new ?? -1) - (old - begin)) > tolerance { wrong.append("\(old) became \(new ?? -1)") }
        }
        #expect(wrong.isEmpty)
    }

    /// Pauses of the pictures while the sound goes on: a screen that did not change, a camera that was away.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        arguments: [0, 3],
        ["between(n,20,60)", "between(n,20,95)", "mod(n,40)", "between(n,20,60)+between(n,63,110)"])
    func keepsPausesBesideSound(bframes: Int, left: String) throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.ffmpeg(
            [
                "-f", "lavfi", "-i", ClipWorkshop.moving(count: 150), "-f", "lavfi", "-i",
                "sine=sample_rate=48000:duration=6", "-vf", "select='not(\(left))'", "-fps_mode", "vfr", "-c:v",
                "libx264",
                "-preset", "ultrafast", "-c:a", "aac", "pauses.mp4",
            ])
        let (outcome, result) = try workshop.play(
            path, encoder: ["preset": "veryfast", "bframes": bframes], recorder: ["audio": "copy"])
        #expect(outcome.status == 0, "\(outcome.error)")
        try Self.expectSame(try ClipProbe(path), try ClipProbe(result))
    }

    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func countsOnWhereAStreamHasNoTimes() throws {
        let workshop = try ClipWorkshop()
        let (outcome, result) = try workshop.play(try workshop.make("a.h264", ClipWorkshop.moving(count: 50), "-bf 3"))
        #expect(outcome.status == 0, "\(outcome.error)")
        let times = try ClipProbe(result).times.compactMap { $0 }
        #expect(times.count == 50)
        #expect(zip(times.dropFirst(), times).allSatisfy { abs($0 - $1 - 0.04) < 1e-5 }, "\(times)")
    }

    /// H.264 with 4:2:0 colour has even sides: the last column and row go.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        arguments: [("321x241", "320x240"), ("320x241", "320x240"), ("17x240", "16x240")])
    func playsOddSizes(size: String, expected: String) throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.make(
            "odd.webm", ClipWorkshop.moving(size), "-c:v libvpx-vp9 -deadline realtime -cpu-used 8")
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let after = try ClipProbe(result)
        try Self.expectSame(try ClipProbe(path), after)
        #expect(after.size == expected)
    }

    /// RGB has no tags that would suit what it is turned into.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe), arguments: ["animation.gif", "picture.png", "planar.mkv", "a picture.mp4"])
    func playsColoursThatAreRGB(name: String) throws {
        let workshop = try ClipWorkshop()
        let options = [
            "animation.gif": "-c:v gif -pix_fmt bgr8", "picture.png": "-c:v png -pix_fmt rgb24 -frames:v 1",
            "planar.mkv": "-c:v libx264rgb -pix_fmt bgr24",
            "a picture.mp4": "-c:v png -pix_fmt rgb24 -frames:v 1 -f image2",
        ]
        let path = try workshop.make(name, ClipWorkshop.moving(), options[name]!)
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let after = try ClipProbe(result)
        try Self.expectSame(try ClipProbe(path), after)
        #expect(after.tags == ["color_space": "smpte170m"])
    }

    /// The eight ways a picture can lie, by the matrix in the container: a, b, c, d of ISO/IEC 14496-12, 8.3.2.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        arguments: [
            [1, 0, 0, 1], [-1, 0, 0, 1], [-1, 0, 0, -1], [1, 0, 0, -1], [0, 1, 1, 0], [0, 1, -1, 0], [0, -1, -1, 0],
            [0, -1, 1, 0],
        ])
    func keepsTheOrientation(matrix: [Int]) throws {
        let workshop = try ClipWorkshop()
        try workshop.make("upright.mp4", ClipWorkshop.moving(count: 3))
        let path = try workshop.change("upright.mp4", to: "turned.mp4") { bytes in
            // The matrix is 40 bytes into the track header's content (version 0).
            let header = try #require(bytes.range(of: Data("tkhd".utf8)))
            for (index, value) in zip([0, 1, 3, 4], matrix) {
                let number = UInt32(bitPattern: Int32(value * 65536)).bigEndian
                let place = header.upperBound + 40 + 4 * index
                withUnsafeBytes(of: number) { bytes.replaceSubrange(place..<place + 4, with: $0) }
            }
        }
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let (before, after) = (try ClipProbe(path), try ClipProbe(result))
        #expect(before.matrix == (matrix == [1, 0, 0, 1] ? [] : matrix.map { $0 * 65536 }))
        #expect(after.matrix == before.matrix)
    }

    /// Cameras that write a bare stream say it in the stream (H.264, D.2.27: display orientation SEI).
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func readsTheOrientationOfAStream() throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.make(
            "turned.h264", ClipWorkshop.moving(count: 3), "-bsf:v h264_metadata=display_orientation=insert:rotate=90")
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        // Turned against the clock by 90°.
        #expect(try ClipProbe(result).matrix == [0, -65536, 65536, 0])
    }
}
