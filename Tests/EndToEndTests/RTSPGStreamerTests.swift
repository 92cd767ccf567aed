// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// GStreamer's `rtspsrc` before the RTSP sink: pictures, times, TLS, and the end of the stream.
@Suite(.serialized) struct RTSPGStreamerTests {
    /// Decoded pictures as MD5, and the times of all access units in ticks of 1/90000 s.
    private struct Seen {
        var pictures: [String]
        var times: [Int]
        var steps: [Int] { RTSPStream.steps(times) }
    }

    /// - Parameters:
    ///   - count: Ends after so many pictures; nil for the stream's own end.
    ///   - more: Further properties of `rtspsrc`.
    ///   - file: Where the pictures go.
    private static func start(
        _ url: String, _ transport: String, count: Int?, _ more: [String] = [], to file: String
    ) throws -> RunningProgram {
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
        let player = try Tool.gstreamer.start(arguments)
        player.closeInput()
        return player
    }

    private static func seen(by player: RunningProgram, in file: String) throws -> Seen {
        let outcome = try player.finish()
        #expect(outcome.status == 0 || outcome.hasGivenUpItsGoodbye, "\(outcome.error)")
        let times = outcome.lines.filter { $0.contains("probe: last-message = chain") }.compactMap(Self.time)
        let pictures = try RTSPStream.pictures(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "320x240", "-i", file])
        return Seen(pictures: pictures, times: times)
    }

    /// `…, pts: 0:00:01.234567890, …`
    private static func time(_ line: some StringProtocol) -> Int? {
        guard let found = line.range(of: "pts: ") else { return nil }
        let parts = line[found.upperBound...].prefix { $0 != "," }.split(separator: ":").compactMap { Double($0) }
        guard parts.count == 3 else { return nil }
        return Int(((parts[0] * 3600 + parts[1] * 60 + parts[2]) * 90_000).rounded())
    }

    /// A player's pictures are those of the recording, each at its time.
    ///
    /// - Parameter more: Further properties of `rtspsrc`.
    private static func check(
        _ transport: String, isSecure: Bool = false, _ more: [String] = [], url: (RTSPStream) -> String = { $0.url }
    ) throws {
        let (seen, recorded, recordedSteps) = try DatagramLosses.retrying(
            {
                let stream = try RTSPStream(isSecure: isSecure)
                let file = stream.workspace.path("frames.i420")
                let player = try Self.start(url(stream), transport, count: 50, more, to: file)
                let seen = try Self.seen(by: player, in: file)
                let recorded = try stream.finish()
                return (seen, recorded, try stream.recordedSteps())
            },
            until: { (played: (seen: Seen, recorded: [String], steps: [Int])) in
                let seen = played.seen
                return seen.pictures.count >= 48 && RTSPStream.isRun(seen.pictures, of: played.recorded)
                    && seen.steps.count >= 48 && RTSPStream.isRun(seen.steps, of: played.steps, within: 2)
            }
        ).value
        #expect(seen.pictures.count >= 48)
        #expect(RTSPStream.isRun(seen.pictures, of: recorded))
        #expect(seen.steps.count >= 48)
        #expect(RTSPStream.isRun(seen.steps, of: recordedSteps, within: 2), "\(seen.steps)")
    }

    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func showsEveryPictureAtItsTime(transport: String) throws {
        try Self.check(transport)
    }

    @Test(.needs(.gstreamer), .needsIPv6, arguments: ["tcp", "udp"]) func playsOverIPv6(transport: String) throws {
        try Self.check(transport) { $0.urlOverIPv6 }
    }

    @Test(.needs(.gstreamer), .needs(.openssl)) func playsOverTLS() throws {
        try Self.check("tcp", isSecure: true, ["tls-validation-flags=0"])
    }

    /// Over UDP the end is RTCP's BYE, over TCP the end of the connection.
    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func endsWithTheStream(transport: String) throws {
        try RTSPStream.expectTheEnd { stream in
            let file = stream.workspace.path("frames.i420")
            let player = try Self.start(stream.url, transport, count: nil, to: file)
            // A second of it.
            func size() -> Int {
                ((try? FileManager.default.attributesOfItem(atPath: file))?[.size] as? NSNumber)?.intValue ?? 0
            }
            for _ in 0..<1800 where size() < 50 * 320 * 240 * 3 / 2 { player.listen(seconds: 0.1) }
            return { try Self.seen(by: player, in: file).pictures }
        }
    }

    /// RTSP through HTTP: a GET and a POST.
    @Test(.needs(.gstreamer)) func playsThroughHTTP() throws {
        try Self.check("tcp") { $0.url.replacingOccurrences(of: "rtsp://", with: "rtsph://") }
    }
}
