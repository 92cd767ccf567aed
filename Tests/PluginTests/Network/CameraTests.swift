// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import FileSource

/// Cameras as they are sold, against `Tests/Tools/rtsp-camera.py`.
@Suite(.serialized) struct CameraTests {
    /// What a camera does, and what it was asked.
    private final class Camera {
        let process = Process()
        let port: Int
        private let pipe = Pipe()
        private let folder: ScratchFolder

        init(_ options: [String: Any]) throws {
            folder = try ScratchFolder()
            let encoder =
                options["codec"] as? String == "h265"
                ? ["libx265", "-x265-params", "log-level=none:keyint=10:bframes=0:repeat-headers=1", "-f", "hevc"]
                : ["libx264", "-g", "10", "-bf", "0", "-f", "h264"]
            try ClipMaker.ffmpeg(
                arguments: ["-f", "lavfi", "-i", ClipMaker.moving(count: 50), "-pix_fmt", "yuv420p", "-c:v"] + encoder
                    + [folder.file("clip")])
            var options = options
            options["file"] = folder.file("clip")
            let text = String(decoding: try JSONSerialization.data(withJSONObject: options), as: UTF8.self)
            let tool = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appending(path: "../../Tools/rtsp-camera.py").standardized.path
            process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            process.arguments = [tool, text]
            process.standardOutput = pipe
            try process.run()
            var line: [UInt8] = []
            while line.last != 10 { line += try #require(try pipe.fileHandleForReading.read(upToCount: 1)) }
            port = try #require(Int(String(decoding: line.dropLast(), as: UTF8.self)))
        }

        /// The requests so far; the camera ends.
        func end() -> [String] {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            process.waitUntilExit()
            let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            return text.split(separator: "\n").map(String.init)
        }

        /// It stands still, with its connections open.
        func freeze() { kill(process.processIdentifier, SIGSTOP) }

        deinit { _ = end() }
    }

    private static let head = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\na=control:*\r\n"
    private static let video =
        "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\n"

    private static func sdp(_ video: String = video, control: String = "a=control:trackID=1\r\n") -> String {
        head + video + control
    }

    /// The access units that come, and the format.
    private static func units(_ driver: StageDriver<NetworkSource>, count: Int) throws -> [[UInt8]] {
        var found: [[UInt8]] = []
        let limit = Date() + 60
        while found.count < count {
            try #require(Date() < limit, "only \(found.count) access units")
            try #require(try driver.produce() == .more)
            while let unit = driver.takeAccessUnit() { unit.withBytes { found.append(Array($0)) } }
        }
        return found
    }

    /// Parameter sets that no decoder can read, none at all, and half of them: right ones are in the stream.
    @Test(
        .needsFFmpeg,
        arguments: [
            "6QAMdnR5,AAAA", "Z0IAHg==,aM48gA==", "Z/////8=,aP///w==", "{sets},", "", "x",
        ])
    func playsADescriptionWithWrongParameterSets(sets: String) throws {
        let video = Self.video.replacing("{sets}", with: sets)
        // A busy machine may take so long for the first look that the stream's first keyframe is over.
        for attempt in 1...3 {
            let camera = try Camera(["sdp": Self.sdp(video)])
            let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
            let known = try #require(driver.outputFormat?.encoded?.parameterSets)
            let units = try Self.units(driver, count: 25)
            let skipped = NetworkSourceTests.figure(driver, "skipped")?.asInt
            try driver.stop()
            // Those of the format are those of the stream.
            let isWhole = units[0].count > known.count && units[0].containsSlice(known.dropFirst(4))
            if isWhole, skipped == 0 { return }
            #expect(attempt < 3, "\(isWhole), \(skipped ?? -1) skipped")
        }
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            "", "a=fmtp:96 sprop-vps=QAE=;sprop-sps=QgE=;sprop-pps=RAE=\r\n", "a=fmtp:96 sprop-vps=x;sprop-sps=;\r\n",
        ])
    func playsADescriptionOfH265WithWrongParameterSets(parameters: String) throws {
        // A busy machine loses the first packet now and then.
        for attempt in 1...3 {
            let camera = try Camera([
                "codec": "h265", "sdp": Self.sdp("m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\n" + parameters),
            ])
            let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
            let known = try #require(driver.outputFormat?.encoded)
            #expect(known.codec == .h265)
            let units = try Self.units(driver, count: 25)
            try driver.stop()
            if units[0].containsSlice(known.parameterSets.dropFirst(4)) { return }
            #expect(attempt < 3, "\(units[0].prefix(80))")
        }
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            ("a=control:*\r\n", [""]), ("a=control:*\r\n", ["/"]), ("a=control:/cam/one\r\n", ["/one"]),
            ("a=control:?a=1\r\n", ["?a=1", "/?a=1"]), ("", ["", "/"]), ("a=control:{url}/v\r\n", ["/v"]),
            ("a=control:v\r\n", ["/v"]),
        ])
    func playsATrackWhereItsControlLeads(control: String, places: [String]) throws {
        let camera = try Camera(["sdp": Self.sdp(control: control), "strict": places])
        let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
        _ = try Self.units(driver, count: 25)
        try driver.stop()
        // The reader takes leave by itself, which a busy machine may delay.
        Thread.sleep(forTimeInterval: 1)
        #expect(camera.end().contains { $0.hasPrefix("TEARDOWN") })
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            "m=video 0 RTP/AVP 96\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\n",
            "m=video 0 RTP/AVP 96\r\n",
            "m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\na=control:m\r\nm=data 0 RTP/AVP 108\r\n"
                + video + "a=framesize:96 160-120\r\na=x-dimensions:160,120\r\na=framerate:0\r\n",
        ])
    func playsADescriptionThatIsOdd(video: String) throws {
        let camera = try Camera(["sdp": Self.sdp(video)])
        let driver = try NetworkSourceTests.driver(
            "rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false, "analyzeSeconds": 1"#)
        _ = try Self.units(driver, count: 25)
        try driver.stop()
    }

    private static let md5 = #"Digest realm="x", nonce="a", algorithm=MD5, qop="auth""#
    private static let sha = #"Digest realm="x", nonce="b", algorithm=SHA-256, qop="auth""#
    private static let basic = #"Basic realm="x""#

    private static func login(_ text: String, _ folder: ScratchFolder) throws -> String {
        try Data("\u{FEFF}\(text)\r\n".utf8).write(to: URL(fileURLWithPath: folder.file("login")))
        return #""decode": false, "login": "\#(folder.file("login"))""#
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            ([md5], "p"), ([sha], "p"), ([md5, sha], "p"), ([sha, md5], "p"), ([basic, sha], "p"), ([sha, basic], "p"),
            ([basic, md5], ""), ([md5, basic], String(repeating: "ä", count: 500)),
            ([basic], String(repeating: "b", count: 1000)),
            ([#"Digest realm="x", nonce="c", algorithm=SHA-512-256, userhash=true"#], "p: q"),
            ([#"Digest realm="x", nonce="c", algorithm=MD5-sess, qop="auth-int""#], "p"),
        ])
    func logsInAsACameraAsks(auth: [String], password: String) throws {
        let folder = try ScratchFolder()
        let camera = try Camera(["sdp": Self.sdp(), "auth": auth, "password": password])
        let driver = try NetworkSourceTests.driver(
            "rtsp://127.0.0.1:\(camera.port)/cam", Self.login("user:\(password)", folder))
        _ = try Self.units(driver, count: 5)
        try driver.stop()
    }

    private static func fault(_ camera: Camera, _ options: String) -> String {
        do {
            try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", options).stop()
            return ""
        } catch { return "\(error)".replacing(":\(camera.port)", with: "") }
    }

    @Test(.needsFFmpeg) func namesALoginThatItCannotGive() throws {
        let folder = try ScratchFolder()
        let camera = try Camera(["sdp": Self.sdp(), "auth": ["Bearer realm=x", "Digest realm=y, algorithm=SHA-999"]])
        #expect(
            Self.fault(camera, try Self.login("user:p", folder)).contains(
                "'rtsp://127.0.0.1/cam' asks for a login in a way that is not known here: bearer, digest SHA-999. Set the camera to Digest (MD5, SHA-256 or SHA-512-256) or Basic."
            ))
    }

    /// Cameras lock out who tries a wrong login often.
    @Test(.needsFFmpeg, arguments: [[md5], [sha], [md5, sha], [basic], [sha, md5]])
    func triesAWrongLoginOnce(auth: [String]) throws {
        let folder = try ScratchFolder()
        let camera = try Camera(["sdp": Self.sdp(), "auth": auth, "password": "right"])
        #expect(Self.fault(camera, try Self.login("user:wrong", folder)).contains("refuses the login"))
        let asked = camera.end()
        #expect(asked.count { $0.hasSuffix(" login") } == 1, "\(asked)")
    }

    /// A server that leads to another one does not get the login carried there.
    @Test(.needsFFmpeg, arguments: [[], [md5], [sha]]) func takesNoLoginToAnotherServer(auth: [String]) throws {
        let folder = try ScratchFolder()
        let other = try Camera(["sdp": Self.sdp(), "auth": [Self.basic], "user": "user", "password": "secret"])
        let camera = try Camera([
            "sdp": Self.sdp(), "auth": auth, "password": "secret",
            "redirect": "rtsp://127.0.0.1:\(other.port)/cam",
        ])
        let login = try Self.login("user:secret", folder)
        let fault = Self.fault(camera, login)
        #expect(fault.contains("leads to another server ('rtsp://127.0.0.1"), "\(fault)")
        #expect(fault.contains("and the login is not sent there"), "\(fault)")
        // Without a login the stream is played.
        if auth.isEmpty {
            let open = try Camera(["sdp": Self.sdp()])
            let leading = try Camera(["sdp": Self.sdp(), "redirect": "rtsp://127.0.0.1:\(open.port)/cam"])
            let driver = try NetworkSourceTests.driver(
                "rtsp://127.0.0.1:\(leading.port)/cam", #""decode": false"#)
            _ = try Self.units(driver, count: 5)
            try driver.stop()
        }
        #expect(!other.end().contains { $0.hasSuffix(" login") })
    }

    /// A camera asks for a new signature of what keeps its session alive.
    @Test(.needsFFmpeg) func signsASignOfLifeAnew() throws {
        let folder = try ScratchFolder()
        let stale = #"Digest realm="x", nonce="z", stale=true, algorithm=SHA-256, qop="auth""#
        let camera = try Camera([
            "sdp": Self.sdp(), "auth": [Self.sha], "password": "p", "timeout": 2, "stale": [stale],
        ])
        let driver = try NetworkSourceTests.driver(
            "rtsp://127.0.0.1:\(camera.port)/cam", Self.login("user:p", folder))
        _ = try Self.units(driver, count: 100)
        #expect(NetworkSourceTests.figure(driver, "losses")?.asInt == 0)
        try driver.stop()
        #expect(camera.end().count { $0.hasPrefix("OPTIONS") && $0.hasSuffix("login") } >= 2)
    }

    /// Some servers keep a session alive by `GET_PARAMETER` alone.
    @Test(.needsFFmpeg, arguments: ["DESCRIBE, SETUP, PLAY", "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER"])
    func keepsItsSession(known: String) throws {
        let camera = try Camera(["sdp": Self.sdp(), "timeout": 2, "public": known])
        let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
        _ = try Self.units(driver, count: 100)
        try driver.stop()
        let signs = camera.end().drop { !$0.hasPrefix("PLAY") }.dropFirst().filter { !$0.hasPrefix("TEARDOWN") }
        #expect(signs.count >= 2 && signs.first?.hasPrefix("OPTIONS") == true, "\(signs)")
        let usual = known.contains("GET_PARAMETER") ? "GET_PARAMETER" : "OPTIONS"
        #expect(signs.dropFirst().allSatisfy { $0.hasPrefix(usual + " ") }, "\(signs)")
    }

    /// What other clients let pass: empty lines and empty packets between packets, numbers of packets that fall.
    @Test(.needsFFmpeg, arguments: ["", "lines", "empty", "restart"]) func playsPacketsThatAreOdd(odd: String) throws {
        let camera = try Camera(["sdp": Self.sdp(), "odd": odd])
        let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
        var steps: [Int64] = []
        var last: Int64?
        let limit = Date() + 60
        while steps.count < 100 {
            try #require(Date() < limit, "only \(steps.count) access units")
            try #require(try driver.produce() == .more)
            while let unit = driver.takeAccessUnit() {
                if let last { steps.append(unit.dts.nanoseconds - last) }
                last = unit.dts.nanoseconds
            }
        }
        for name in ["damaged", "losses", "missed"] { #expect(NetworkSourceTests.figure(driver, name)?.asInt == 0) }
        // Some of the parts of one picture may be lost where the numbers fall.
        let mean = Double(steps.reduce(0, +)) / 100 / 1e6
        #expect(abs(mean - 40) < 4, "\(steps)")
        try driver.stop()
    }

    /// Each fortieth packet of RTP is lost on its way, or the camera leaves it out.
    @Test(.needsFFmpeg, arguments: ["tcp", "udp"], [false, true]) func saysWhichPacketsNeverCame(
        transport: String, decodes: Bool
    ) throws {
        let camera = try Camera(["sdp": Self.sdp(), "loses": 40])
        let driver = try NetworkSourceTests.driver(
            "rtsp://127.0.0.1:\(camera.port)/cam", #""transport": "\#(transport)", "decode": \#(decodes)"#)
        var events: [Event] = []
        func missed() -> Int { NetworkSourceTests.figure(driver, "missed")?.asInt ?? 0 }
        let limit = Date() + 60
        while missed() < 10 {
            try #require(Date() < limit, "\(missed()) packets")
            try #require(try driver.produce() == .more)
            while driver.takeFrame() != nil || driver.takeAccessUnit() != nil {}
            events += driver.takeEvents().filter { $0.name == "packets-missed" }
        }
        _ = try driver.produce()
        events += driver.takeEvents().filter { $0.name == "packets-missed" }
        // A busy machine may look at them late.
        #expect((1...2).contains(events.count) && events.last?.details["missed"]?.asInt ?? 0 >= 10, "\(events)")
        #expect(events.allSatisfy { $0.text.contains(#"Set "transport": "tcp""#) == (transport == "udp") })
        try driver.stop()
    }

    /// Some servers count no other sign than `GET_PARAMETER`, from the first on.
    @Test(.needsFFmpeg) func keepsASessionByItsParametersAlone() throws {
        let camera = try Camera([
            "sdp": Self.sdp(), "timeout": 6, "parameter": true,
            "public": "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER",
        ])
        let driver = try NetworkSourceTests.driver("rtsp://127.0.0.1:\(camera.port)/cam", #""decode": false"#)
        _ = try Self.units(driver, count: 200)
        #expect(NetworkSourceTests.figure(driver, "losses")?.asInt == 0)
        try driver.stop()
    }

    /// libavformat keeps the last picture of a stream until the next one begins, and gives it when the connection is given
    /// up: it must not say that the camera is back.
    @Test(.needsFFmpeg, arguments: [0.9, 1.5]) func givesNoLatePictureOfACameraThatFreezes(stallSeconds: Double) throws
    {
        let camera = try Camera(["sdp": Self.sdp()])
        let driver = try NetworkSourceTests.driver(
            "rtsp://127.0.0.1:\(camera.port)/cam", "\"stallSeconds\": \(stallSeconds)")
        _ = try NetworkSourceTests.pictures(driver, count: 25)
        camera.freeze()
        // What is on its way, also on a busy machine.
        let quiet = Date() + stallSeconds * 0.6
        while Date() < quiet {
            try #require(try driver.produce() == .more)
            while driver.takeFrame() != nil {}
        }
        var late = 0
        let limit = Date() + 30
        while !driver.takeEvents().contains(where: { $0.name == "stream-lost" }) {
            try #require(Date() < limit)
            try #require(try driver.produce() == .more)
            while let frame = driver.takeFrame() { late += frame.isSubstitute ? 0 : 1 }
        }
        #expect(late == 0)
        #expect(NetworkSourceTests.figure(driver, "state")?.asString == "recovering")
        try driver.stop()
    }

    /// The events of a stream that is there or not, is lost, refused and back: their names and their order are promises.
    @Test(.needsFFmpeg, arguments: ["fail", "wait", "stop"]) func saysWhatBecomesOfAStream(kind: String) throws {
        var camera: Camera?
        let first = try Camera(["sdp": Self.sdp()])
        let port = first.port
        let url = "rtsp://127.0.0.1:\(port)/cam"
        if kind == "wait" { _ = first.end() } else { camera = first }
        let driver = try NetworkSourceTests.driver(
            url, kind == "wait" ? #""ifMissing": "wait""# : kind == "stop" ? #""whileLost": "stop""# : "")
        var names: [String] = []
        func run(until name: String) throws {
            let limit = Date() + 60
            while !names.contains(name) {
                try #require(Date() < limit, "\(names)")
                try #require(try driver.produce() == .more)
                while driver.takeFrame() != nil {}
                names += driver.takeEvents().map(\.name)
            }
        }
        func state() -> String { NetworkSourceTests.figure(driver, "state")?.asString ?? "" }
        if kind == "wait" {
            try run(until: "stream-refused")
            #expect(state() == "recovering" && driver.context.recovering == "'\(url)' is not there yet")
            camera = try Camera(["sdp": Self.sdp(), "port": port])
            names = []
            try run(until: "stream-back")
            #expect(!names.contains("stream-lost") && driver.context.recovering == nil)
            names = []
        }
        _ = try NetworkSourceTests.pictures(driver, count: 5)
        #expect(state() == "streaming")
        _ = camera?.end()
        if kind == "stop" {
            #expect(throws: FrameHostError.self) { try run(until: "stream-lost") }
            #expect(!names.contains("stream-lost") && NetworkSourceTests.figure(driver, "losses")?.asInt == 1)
            return try driver.stop()
        }
        try run(until: "stream-refused")
        #expect(
            names.filter { ["stream-lost", "stream-refused", "stream-back"].contains($0) } == [
                "stream-lost", "stream-refused",
            ])
        #expect(state() == "recovering" && driver.context.recovering?.hasPrefix("'\(url)' is lost: ") == true)
        camera = try Camera(["sdp": Self.sdp(), "port": port])
        try run(until: "stream-back")
        #expect(
            names.filter { ["stream-lost", "stream-refused", "stream-back"].contains($0) } == [
                "stream-lost", "stream-refused", "stream-back",
            ])
        #expect(state() == "streaming" && NetworkSourceTests.figure(driver, "losses")?.asInt == 1)
        try driver.stop()
        _ = camera?.end()
    }

    @Test(.needsFFmpeg, arguments: [("SETUP", "404 Not Found"), ("PLAY", "302 Moved")])
    func saysWhatACameraAnswers(method: String, status: String) throws {
        let camera = try Camera(["sdp": Self.sdp(), "answers": [method: status]])
        let fault = Self.fault(camera, #""decode": false"#)
        #expect(fault.contains("'rtsp://127.0.0.1/cam' answers \(method) with \(status)."), "\(fault)")
    }
}

extension [UInt8] {
    /// Whether the bytes are somewhere in these.
    fileprivate func containsSlice(_ bytes: some Collection<UInt8>) -> Bool {
        indices.contains { self[$0...].starts(with: bytes) }
    }
}
