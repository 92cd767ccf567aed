// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// High dynamic range in a chain of 8 bits.
@Suite struct ToneMapTests {
    /// No 8 bits say that they are HLG or PQ, and 10 bits in 4:2:2 go the same way.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe), arguments: ["arib-std-b67", "smpte2084"], ["yuv420p10le", "yuv422p10le"])
    func eightBitsDoNotSayThatTheyAreMore(transfer: String, pixels: String) throws {
        let workshop = try ClipWorkshop()
        let path = try workshop.ffmpeg(
            ["-f", "lavfi", "-i", ClipWorkshop.moving(count: 10), "-c:v", "libx265", "-x265-params", "log-level=none"]
                + ["-pix_fmt", pixels, "-color_primaries", "bt2020", "-color_trc", transfer, "-colorspace", "bt2020nc"]
                + ["a.mp4"])
        let (outcome, result) = try workshop.play(path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let probe = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=pix_fmt,color_transfer,color_primaries",
            "-of",
            "csv=p=0", result)
        #expect(
            probe.output.trimmingCharacters(in: .whitespacesAndNewlines) == "yuv420p,bt709,bt2020", "\(probe.output)")
    }
}
