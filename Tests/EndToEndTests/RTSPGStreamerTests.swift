// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// GStreamer's `rtspsrc` before the RTSP sink: pictures, times, TLS, and the end of the stream.
@Suite(.serialized) struct RTSPGStreamerTests {
    /// Decoded pictures as MD5, and the times of all access units in ticks of 1/90000 s.
    private struct Seen {
        var pictures: [String]
        var times: [Int]
    }

    /// - Parameters:
    ///   - count: Ends after so many pictures; nil for the stream's own end.
    ///   - more: Further properties of `rtspsrc`.
    private static func play(_ url: String, _ transport: String, count: Int? = 50, _ more: [String] = []) throws -> Seen
    {
        let workspace = try Workspace()
        let file = workspace.path("frames.i420")
        // buffer-mode=none: times are those of RTP, not smoothed.
        let arguments =
            ["-v", "rtspsrc", "location=\(url)", "protocols=\(transport)", "latency=100", "buffer-mode=none"] + more
            + [
                "!", "rtph264depay", "!", "h264parse", "!", "video/x-h264,alignment=au", "!", "identity", "name=probe",
                "silent=false", "!",
            ]
            + ["avdec_h264", "!", "video/x-raw,format=I420", "!", "identity"]
            + (count.map { ["eos-after=\($0)"] } ?? [])
            + ["!", "filesink", "location=\(file)"]
        let outcome = try Tool.gstreamer.run(arguments, timeout: 90)
        #expect(outcome.status == 0 || hasGivenUpItsGoodbye(outcome), "\(outcome.error)")
        let times = outcome.lines.filter { $0.contains("probe: last-message = chain") }.compactMap(Self.time)
        let pictures = try RTSPStream.pictures(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "320x240", "-i", file])
        return Seen(pictures: pictures, times: times)
    }

    /// After its last picture `rtspsrc` says PAUSE and TEARDOWN. Where the answer to the first takes longer than
    /// gst-launch's own way down, it cancels its connection, finds it cancelled ("end-of-file", without any system call)
    /// and ends with status 1: the server has no part in it.
    private static func hasGivenUpItsGoodbye(_ outcome: Outcome) -> Bool {
        let places = outcome.error.split(separator: "\n").filter { $0.hasPrefix("../") }
        let ofGoodbye = ["gst_rtspsrc_try_send ()", "gst_rtspsrc_pause ()", "gst_rtspsrc_close ()"]
        return outcome.status == 1 && !places.isEmpty
            && places.allSatisfy { place in ofGoodbye.contains { place.contains($0) } }
            && outcome.error.contains("(Received end-of-file)")
    }

    /// `…, pts: 0:00:01.234567890, …`
    private static func time(_ line: some StringProtocol) -> Int? {
        guard let found = line.range(of: "pts: ") else { return nil }
        let parts = line[found.upperBound...].prefix { $0 != "," }.split(separator: ":").compactMap { Double($0) }
        guard parts.count == 3 else { return nil }
        return Int(((parts[0] * 3600 + parts[1] * 60 + parts[2]) * 90_000).rounded())
    }

    private static func check(_ seen: Seen, _ stream: RTSPStream) throws {
        #expect(seen.pictures.count >= 48)
        #expect(RTSPStream.isRun(seen.pictures, of: try stream.finish()))
        let steps = RTSPStream.steps(seen.times)
        #expect(steps.count >= 48)
        #expect(RTSPStream.isRun(steps, of: try stream.recordedSteps(), within: 2), "\(steps)")
    }

    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func showsEveryPictureAtItsTime(transport: String) throws {
        let stream = try RTSPStream()
        try Self.check(try Self.play(stream.url, transport), stream)
    }

    @Test(.needs(.gstreamer), .needsIPv6, arguments: ["tcp", "udp"]) func playsOverIPv6(transport: String) throws {
        let stream = try RTSPStream()
        try Self.check(try Self.play(stream.urlOverIPv6, transport), stream)
    }

    @Test(.needs(.gstreamer), .needs(.openssl)) func playsOverTLS() throws {
        let stream = try RTSPStream(isSecure: true)
        try Self.check(try Self.play(stream.url, "tcp", ["tls-validation-flags=0"]), stream)
    }

    /// Over UDP the end is RTCP's BYE, over TCP the end of the connection.
    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func endsWithTheStream(transport: String) throws {
        let stream = try RTSPStream(frames: 150)
        let seen = try Self.play(stream.url, transport, count: nil)
        let recorded = try stream.finish(bySignal: false)
        // A busy machine leaves out some of the 150, for the recording and the player alike.
        #expect((20...150).contains(recorded.count))
        #expect(seen.pictures.count >= 20)
        #expect(seen.pictures == recorded.suffix(seen.pictures.count))
    }

    /// RTSP through HTTP: a GET and a POST.
    @Test(.needs(.gstreamer)) func playsThroughHTTP() throws {
        let stream = try RTSPStream()
        try Self.check(try Self.play(stream.url.replacingOccurrences(of: "rtsp://", with: "rtsph://"), "tcp"), stream)
    }
}
