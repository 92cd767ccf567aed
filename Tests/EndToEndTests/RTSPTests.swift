import Foundation
import Glibc
import Testing

/// Real clients before the RTSP sink: they must see exactly the pictures that were encoded.
@Suite(.serialized) struct RTSPTests {
    /// `part` as a run without gap in `whole`, which may have equal neighbours.
    private static func isRun(_ part: [String], of whole: [String]) -> Bool {
        guard let first = part.first else { return false }
        return whole.indices.contains { whole[$0] == first && whole[$0...].starts(with: part) }
    }

    @Test(.needs(.ffmpeg), arguments: ["tcp", "udp"]) func ffmpegSeesEveryPicture(transport: String) throws {
        let stream = try RTSPStream()
        let seen = try RTSPStream.pictures(["-rtsp_transport", transport, "-i", stream.url, "-frames:v", "75"])
        #expect(seen.count == 75)
        let recorded = try stream.finish()
        #expect(Self.isRun(seen, of: recorded))
    }

    @Test(.needs(.ffprobe), arguments: ["tcp", "udp"]) func ffprobeSeesTheTimesOfTheRecording(transport: String) throws {
        let stream = try RTSPStream()
        let seen = try Self.times(["-rtsp_transport", transport, "-read_intervals", "%+#60", stream.url])
        _ = try stream.finish()
        let recorded = try Self.times([stream.workspace.path("out.mp4")])
        // Each moves by its own start; a tick of rounding on either side. FFmpeg has none for the first picture,
        // of any server (docs/rtsp-conformance.md), and counts the wait for it as a step.
        let steps = Array(zip(seen, seen.dropFirst()).map { $1 - $0 }.dropFirst(2).prefix(50))
        let recordedSteps = zip(recorded, recorded.dropFirst()).map { $1 - $0 }
        #expect(steps.count == 50)
        #expect(
            recordedSteps.indices.contains { start in
                recordedSteps.count - start >= steps.count && zip(steps, recordedSteps[start...]).allSatisfy { abs($0 - $1) <= 2 }
            }, "\(steps)")
    }

    /// The times of all packets, in ticks of 1/90000 s.
    private static func times(_ input: [String]) throws -> [Int] {
        let outcome = try Tool.ffprobe.run(
            ["-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0"] + input)
        #expect(outcome.status == 0)
        #expect(outcome.error == "")
        return outcome.lines.compactMap { Double($0.prefix { $0 != "," }) }.map { Int(($0 * 90_000).rounded()) }
    }

    /// A keyframe every 10 s only: who joins in between has a picture because the encoder is asked.
    @Test(.needs(.ffmpeg)) func showsAPictureAtOnceBetweenKeyframes() throws {
        let stream = try RTSPStream(keyframeSeconds: 10)
        stream.program.listen(seconds: 1.5)
        for _ in 0..<3 {
            let begin = Date()
            let seen = try RTSPStream.pictures(
                [
                    "-rtsp_transport", "tcp", "-analyzeduration", "0", "-i", stream.url,
                    "-frames:v", "1",
                ])
            #expect(seen.count == 1)
            #expect(Date().timeIntervalSince(begin) < 2)
            stream.program.listen(seconds: 0.4)
        }
        _ = try stream.finish()
    }

    @Test(.needs(.gstreamer), arguments: ["tcp", "udp"]) func gstreamerPlays(transport: String) throws {
        let stream = try RTSPStream()
        let frames = try Self.gstreamer(stream.url, transport)
        #expect(Self.isRun(frames, of: try stream.finish()))
    }

    @Test(.needs(.gstreamer), .needs(.openssl)) func gstreamerPlaysOverTLS() throws {
        let stream = try RTSPStream(isSecure: true)
        let frames = try Self.gstreamer(stream.url, "tcp", "tls-validation-flags=0")
        #expect(Self.isRun(frames, of: try stream.finish()))
    }

    /// 50 decoded pictures, as MD5.
    private static func gstreamer(_ url: String, _ transport: String, _ more: String = "") throws -> [String] {
        let workspace = try Workspace()
        let file = workspace.path("frames.i420")
        let arguments =
            ["-q", "rtspsrc", "location=\(url)", "protocols=\(transport)", "latency=100"] + (more.isEmpty ? [] : [more])
            + [
                "!", "rtph264depay", "!", "h264parse", "!", "avdec_h264", "!", "video/x-raw,format=I420", "!", "identity", "eos-after=50",
                "!", "filesink", "location=\(file)",
            ]
        let outcome = try Tool.gstreamer.run(arguments, timeout: 20)
        #expect(outcome.status == 0, "\(outcome.error)")
        let seen = try RTSPStream.pictures(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "320x240", "-i", file])
        #expect(seen.count >= 48)
        return seen
    }

    @Test(.needs(.ffmpeg)) func asksForAPassword() throws {
        let stream = try RTSPStream(
            sink: #""users": "env:RTSP_USERS", "authentication": "digest""#, environment: ["RTSP_USERS": "anna:secret"])
        let open = try Tool.ffprobe.run("-v", "error", "-rtsp_transport", "tcp", stream.url)
        #expect(open.status != 0)
        #expect(open.error.contains("401"))
        let named = stream.url.replacingOccurrences(of: "rtsp://", with: "rtsp://anna:secret@")
        for transport in ["tcp", "udp"] {
            #expect(try RTSPStream.pictures(["-rtsp_transport", transport, "-i", named, "-frames:v", "10"]).count == 10)
        }
        _ = try stream.finish()
        #expect(!(stream.program.output + stream.program.error).contains("secret"))
    }

    @Test(.needs(.curl)) func curlAsksForOptions() throws {
        let stream = try RTSPStream()
        let outcome = try Tool.curl.run("-sS", "-i", "--max-time", "5", stream.url)
        #expect(outcome.output.contains("RTSP/1.0 200 OK"))
        #expect(outcome.output.contains("GET_PARAMETER"))
        _ = try stream.finish()
    }

    /// NIO lies in one image: two copies would not know each other's loops.
    @Test(.needs(.nm)) func hasNIOInOneImage() throws {
        let folder = try Repository.programFolder
        var images: [String] = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".so") || name == "framehost" {
            let symbols = try Tool.nm.run("--defined-only", folder.appending(path: name).path).lines
            // The one descriptor of a type lies in the image that defines it.
            if symbols.contains(where: { $0.hasSuffix(" $s7NIOCore10ByteBufferVMn") }) {
                images.append(name)
            }
        }
        #expect(images == ["libFrameNetwork.so"])
    }
}
