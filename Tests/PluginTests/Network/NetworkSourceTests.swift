// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import FrameSupport
import Glibc
import Synchronization
import Testing

@testable import FileSource

/// Against real senders (ffmpeg) and a listener of the test's own, all on the loopback.
@Suite(.serialized) struct NetworkSourceTests {
    typealias Driver = StageDriver<NetworkSource>

    /// A busy machine may keep a sender from sending for longer than the defaults allow.
    static func driver(_ url: String, _ options: String = "") throws -> Driver {
        var members = [#""url": "\#(url)""#]
        if !options.isEmpty { members.append(options) }
        for key in ["connectSeconds", "stallSeconds"] where !options.contains("\"\(key)\"") {
            members.append("\"\(key)\": 60")
        }
        return try StageDriver(
            NetworkSource.self, options: "{ \(members.joined(separator: ", ")) }", clock: ChainClock())
    }

    /// As `driver`, once the sender is there.
    static func connect(_ url: String, _ options: String = "") throws -> Driver {
        var last: (any Error)?
        for _ in 0..<600 {
            do { return try driver(url, options) } catch { last = error }
            usleep(100_000)
        }
        throw last!
    }

    struct Picture {
        var pts: Int64
        var isGap: Bool
        var hash: UInt64
        var mean: Int
    }

    /// What it gives until `isEnough` says so.
    static func pictures(
        _ driver: Driver, seconds: Double = 120, until isEnough: ([Picture]) -> Bool
    ) throws -> [Picture] {
        var found: [Picture] = []
        let limit = Date() + seconds
        while !isEnough(found) {
            guard Date() < limit else {
                throw FrameHostError(.broken, what: "not enough of \(found.count) pictures in \(seconds) s")
            }
            guard try driver.produce() == .more else { break }
            while let frame = driver.takeFrame() {
                found.append(
                    Picture(
                        pts: frame.pts.nanoseconds, isGap: frame.isDiscontinuity, hash: ClipMaker.hash(frame),
                        mean: mean(frame)))
            }
        }
        return found
    }

    static func pictures(_ driver: Driver, count: Int) throws -> [Picture] {
        try pictures(driver) { $0.count >= count }
    }

    /// Of the luma.
    static func mean(_ frame: borrowing Frame) -> Int {
        frame.withPlane(0) { plane in
            var sum = 0
            for y in 0..<plane.height { for byte in plane.row(y) { sum += Int(byte) } }
            return sum / (plane.height * plane.rowBytes)
        }
    }

    static func rises(_ pictures: [Picture]) -> Bool {
        zip(pictures, pictures.dropFirst()).allSatisfy { $0.pts < $1.pts }
    }

    static func figure(_ driver: Driver, _ name: String) -> JSONNode? { driver.stage.figuresForTests[name] }

    static func jumps(_ driver: Driver) -> Int { figure(driver, "timeJumps")?.asInt ?? 0 }

    static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let begin = Date()
        try body()
        return Date().timeIntervalSince(begin)
    }

    // MARK: Pictures

    @Test(.needsFFmpeg, arguments: ["udp", "tcp", "http", "srt", "rtmp"]) func playsAStream(scheme: String) throws {
        let port = try Peer.freePort()
        let urls = [
            "udp": ("udp://127.0.0.1:\(port)?pkt_size=1316", "udp://127.0.0.1:\(port)"),
            "tcp": ("tcp://127.0.0.1:\(port)?listen=1", "tcp://127.0.0.1:\(port)"),
            "http": ("http://127.0.0.1:\(port)/live.ts", "http://127.0.0.1:\(port)/live.ts"),
            "srt": ("srt://127.0.0.1:\(port)?mode=listener", "srt://127.0.0.1:\(port)"),
            "rtmp": ("rtmp://127.0.0.1:\(port)/live/cam", "rtmp://127.0.0.1:\(port)/live/cam"),
        ][scheme]!
        let peer = try Peer.ffmpeg(
            to: urls.0, format: scheme == "rtmp" ? "flv" : "mpegts",
            options: ["http", "rtmp"].contains(scheme) ? ["-listen", "1"] : [])
        let driver = try Self.connect(urls.1)
        let format = try #require(driver.outputFormat?.video)
        #expect(format.width == 160 && format.height == 120 && format.pixelFormat == .i420)
        #expect(format.frameRate == Rational(25))
        // In real time once what was read at first is through.
        func step(_ pictures: [Picture]) -> Int64 {
            let last = pictures.suffix(21)
            return (last[last.endIndex - 1].pts - last[last.startIndex].pts) / 20
        }
        let pictures = try Self.pictures(driver, seconds: 60) { $0.count >= 60 && step($0) > 30_000_000 }
        #expect(Self.rises(pictures))
        #expect(Set(pictures.map(\.hash)).count >= 55)
        // A sender that stood still for a second begins another timeline.
        #expect(pictures.dropFirst().count { $0.isGap } == Self.jumps(driver))
        #expect(step(pictures) > 30_000_000)
        #expect(Self.figure(driver, "state")?.asString == "streaming")
        #expect(try Self.seconds { try driver.stop() } < 30)
        peer.kill()
    }

    /// The queue behind a live source is short: what a sender has at once is given one by one.
    @Test(.needsFFmpeg, arguments: [true, false]) func spreadsWhatComesAtOnce(isDecoded: Bool) throws {
        let bytes = try transportStream()
        let server = try Listener()
        server.serve { $0 == 0 ? bytes : [] }
        defer { server.close() }
        let driver = try Self.driver("tcp://127.0.0.1:\(server.port)", "\"decode\": \(isDecoded)")
        var given = 0
        // From the first item on: what comes before it is the connection.
        var begin: Int64?
        while given < 41 {
            let before = MonotonicTime.now()
            try #require(try driver.produce() == .more)
            if isDecoded {
                while driver.takeFrame() != nil { given += 1 }
            } else {
                while driver.takeAccessUnit() != nil { given += 1 }
            }
            if given > 0, begin == nil { begin = before }
        }
        // 40 steps of 40 ms at twice their speed.
        #expect(MonotonicTime.now() - begin! >= 795_000_000)
        try driver.stop()
    }

    @Test(.needsFFmpeg) func scalesToTheSizeThatIsAsked() throws {
        let port = try Peer.freePort()
        let peer = try Peer.ffmpeg(to: "tcp://127.0.0.1:\(port)?listen=1")
        let driver = try Self.connect("tcp://127.0.0.1:\(port)", #""size": "64x48""#)
        #expect(driver.outputFormat?.video?.width == 64)
        _ = try Self.pictures(driver, count: 5)
        try driver.stop()
        peer.kill()
    }

    @Test(.needsFFmpeg) func playsAPlaylistToItsEndInItsOwnTime() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 75), "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "25",
            "-f",
            "hls", "-hls_time", "1", "-hls_list_size", "0", folder.file("live.m3u8"))
        let port = try Peer.freePort()
        let server = try Peer(
            "/usr/bin/python3", ["-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", folder.path])
        let driver = try Self.connect("http://127.0.0.1:\(port)/live.m3u8")
        let pictures = try Self.pictures(driver) { _ in false }
        #expect(pictures.count == 75)
        // A picture that is a second late begins another timeline.
        #expect(
            zip(pictures, pictures.dropFirst()).allSatisfy {
                $1.isGap ? $1.pts - $0.pts > 1_000_000_000 : abs($1.pts - $0.pts - 40_000_000) < 2_000_000
            })
        #expect(pictures.count { $0.isGap } == Self.jumps(driver))
        #expect(try driver.produce() == .ended)
        try driver.stop()
        server.kill()
    }

    /// The playlist names a segment that the server does not have.
    @Test(.needsFFmpeg) func saysWhichSegmentsAreMissing() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 100), "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "25",
            "-f", "hls", "-hls_time", "1", "-hls_list_size", "0", folder.file("live.m3u8"))
        try FileManager.default.removeItem(atPath: folder.file("live2.ts"))
        let port = try Peer.freePort()
        let server = try Peer(
            "/usr/bin/python3", ["-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", folder.path])
        let driver = try Self.connect("http://127.0.0.1:\(port)/live.m3u8")
        let pictures = try Self.pictures(driver) { _ in false }
        #expect(pictures.count == 75)
        let said = driver.takeEvents().filter { $0.name == "segments-missed" }
        #expect(said.count == 1 && said[0].details["missed"]?.asInt == 1, "\(said)")
        #expect(Self.figure(driver, "missedSegments")?.asInt == 1)
        try driver.stop()
        server.kill()
    }

    /// One long transport stream over HTTP, served whole or broken off in the middle.
    private func transportStream() throws -> [UInt8] {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 50), "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "25",
            "-f", "mpegts", folder.file("clip.ts"))
        return Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("clip.ts"))))
    }

    /// A server without byte ranges: how long the file plays cannot be found out, how long it is can.
    @Test(.needsFFmpeg) func playsAFileOverHTTPOnceWhereItsLengthIsKnown() throws {
        let bytes = try transportStream()
        let server = try Listener()
        server.serve(ends: true) { piece in
            let head = "HTTP/1.0 200 OK\r\nContent-Type: video/mp2t\r\nContent-Length: \(bytes.count)\r\n\r\n"
            return piece == 0 ? Array(head.utf8) : piece == 1 ? bytes : []
        }
        defer { server.close() }
        let driver = try Self.driver("http://127.0.0.1:\(server.port)/clip.ts")
        let pictures = try Self.pictures(driver) { _ in false }
        #expect(pictures.count == 50 && Self.rises(pictures))
        #expect(try driver.produce() == .ended)
        #expect(Self.figure(driver, "attempts")?.asInt == 1)
        #expect(!driver.takeEvents().contains { $0.name == "stream-lost" })
        try driver.stop()
    }

    /// A file that breaks off, and a live stream that says no length.
    @Test(.needsFFmpeg, arguments: [true, false]) func connectsAgainWhereTheEndIsNotTheFiles(hasLength: Bool) throws {
        let bytes = try transportStream()
        let server = try Listener()
        server.serve(ends: true) { piece in
            let length = hasLength ? "Content-Length: \(2 * bytes.count)\r\n" : ""
            return piece == 0
                ? Array("HTTP/1.0 200 OK\r\nContent-Type: video/mp2t\r\n\(length)\r\n".utf8)
                : piece == 1 ? bytes : []
        }
        defer { server.close() }
        let driver = try Self.driver("http://127.0.0.1:\(server.port)/live.ts")
        // A server that is back at once is no loss to anybody: only that it is asked again is certain.
        let pictures = try Self.pictures(driver) { _ in (Self.figure(driver, "attempts")?.asInt ?? 0) > 1 }
        #expect(Self.rises(pictures))
        try driver.stop()
    }

    // MARK: At the start

    private func fault(_ url: String, _ options: String = "") -> String {
        do {
            _ = try Self.driver(url, options)
            return ""
        } catch {
            return (error as? FrameHostErrors).map { $0.errors.map(\.description).joined(separator: "\n") }
                ?? FrameHostError.wrap(error).description
        }
    }

    @Test func saysThatNobodyListens() throws {
        let port = try Peer.freePort()
        #expect(
            fault("rtsp://127.0.0.1:\(port)/live").contains(
                "'rtsp://127.0.0.1:\(port)/live' cannot be opened: Connection refused. Check 'url', and that its server runs."
            ))
    }

    @Test(arguments: ["rtsp", "http", "tcp", "rtmp", "srt", "udp"]) func givesUpAServerThatDoesNotAnswerInTime(
        scheme: String
    ) throws {
        let server = try Listener()
        server.serve { _ in [] }
        defer { server.close() }
        let url = "\(scheme)://127.0.0.1:\(server.port)/live"
        var said = ""
        let seconds = Self.seconds { said = fault(url, #""connectSeconds": 0.5"#) }
        #expect(seconds < 60)
        #expect(said.contains("'\(url)'"), "\(said)")
    }

    @Test(arguments: ["tcp", "http"]) func refusesGarbage(scheme: String) throws {
        let server = try Listener()
        server.serve { piece in
            if scheme == "http", piece == 0 { return Array("HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n".utf8) }
            var random = SystemRandomNumberGenerator()
            return piece > 2000 ? [] : (0..<1024).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        defer { server.close() }
        #expect(
            fault("\(scheme)://127.0.0.1:\(server.port)/a", #""connectSeconds": 2"#).contains("'\(scheme)://127.0.0.1"))
    }

    @Test(.needsFFmpeg) func refusesAStreamWithoutVideo() throws {
        let port = try Peer.freePort()
        let peer = try Peer(
            try #require(Tool.ffmpeg),
            [
                "-nostdin", "-v", "quiet", "-re", "-f", "lavfi", "-i", "sine=duration=60", "-c:a", "aac", "-f",
                "mpegts",
                "udp://127.0.0.1:\(port)?pkt_size=1316",
            ])
        #expect(
            fault("udp://127.0.0.1:\(port)", #""connectSeconds": 60, "analyzeSeconds": 1"#).contains(
                "'udp://127.0.0.1:\(port)' has no video that can be decoded"))
        peer.kill()
    }

    @Test func plansAsItIsAskedWhereTheStreamMayBeMissing() throws {
        let port = try Peer.freePort()
        let driver = try Self.driver(
            "tcp://127.0.0.1:\(port)",
            ##""ifMissing": "wait", "size": "64x48", "rate": 50, "whileLost": "slate", "slateColor": "#ffffff""##)
        #expect(driver.outputFormat?.video?.width == 64)
        let pictures = try Self.pictures(driver, count: 20)
        #expect(pictures.allSatisfy { $0.mean == 235 })
        #expect(Self.rises(pictures))
        #expect((pictures[19].pts - pictures[0].pts) / 19 >= 19_000_000)
        #expect(Self.figure(driver, "state")?.asString == "recovering")
        try driver.stop()
    }

    // MARK: Stop

    /// Seconds that `stop` takes once the source has been at work for a while.
    private func stopTime(_ driver: Driver, after seconds: Double = 0.4) throws -> Double {
        let limit = Date() + seconds
        while Date() < limit { _ = try driver.produce() }
        return try Self.seconds { try driver.stop() }
    }

    /// Whether the reader's thread ends, long before its own waits are over.
    private func readerEnds(_ driver: Driver) -> Bool {
        let limit = Date() + 30
        while driver.stage.isReadingForTests, Date() < limit { usleep(2000) }
        return !driver.stage.isReadingForTests
    }

    @Test(arguments: ["rtsp", "http", "tcp", "rtmp", "srt", "udp"]) func stopsWhileItConnects(scheme: String) throws {
        let server = try Listener()
        server.serve { _ in [] }
        defer { server.close() }
        let driver = try Self.driver(
            "\(scheme)://127.0.0.1:\(server.port)/live", #""ifMissing": "wait", "connectSeconds": 60"#)
        #expect(try stopTime(driver) < 30)
        #expect(readerEnds(driver))
    }

    @Test func stopsWhileItWaitsToConnectAgain() throws {
        let port = try Peer.freePort()
        let driver = try Self.driver("tcp://127.0.0.1:\(port)", #""ifMissing": "wait""#)
        func attempts() -> Int { Self.figure(driver, "attempts")?.asInt ?? 0 }
        _ = try Self.pictures(driver, seconds: 60) { _ in attempts() >= 3 }
        #expect(try stopTime(driver) < 30)
        #expect(readerEnds(driver))
        #expect(attempts() >= 3)
    }

    @Test(.needsFFmpeg, arguments: ["tcp", "http", "srt"]) func stopsBesideAServerThatStandsStill(scheme: String) throws
    {
        let port = try Peer.freePort()
        let peer = try Peer.ffmpeg(
            to:
                "\(scheme)://127.0.0.1:\(port)\(scheme == "http" ? "/a.ts" : scheme == "srt" ? "?mode=listener" : "?listen=1")",
            options: scheme == "http" ? ["-listen", "1"] : [])
        let driver = try Self.connect(
            "\(scheme)://127.0.0.1:\(port)\(scheme == "http" ? "/a.ts" : "")", #""stallSeconds": 60"#)
        _ = try Self.pictures(driver, count: 5)
        peer.freeze()
        #expect(try stopTime(driver, after: 1) < 30)
        #expect(readerEnds(driver))
        peer.kill()
    }

    // MARK: Loss and return

    @Test(.needsFFmpeg) func comesBackTenTimesFromASenderThatIsKilled() throws {
        let port = try Peer.freePort()
        let url = "tcp://127.0.0.1:\(port)"
        var peer = try Peer.ffmpeg(to: url + "?listen=1")
        let driver = try Self.connect(url)
        var all = try Self.pictures(driver, count: 10)
        for _ in 0..<10 {
            peer.kill()
            all += try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "recovering" }
            // Held meanwhile, at the stream's rate.
            all += try Self.pictures(driver, count: 5)
            peer = try Peer.ffmpeg(to: url + "?listen=1")
            all += try Self.pictures(driver) { $0.count > 5 && Self.figure(driver, "state")?.asString == "streaming" }
        }
        #expect(Self.rises(all))
        #expect(Self.figure(driver, "losses")?.asInt == 10)
        let events = driver.takeEvents()
        #expect(events.count { $0.name == "stream-lost" } == 10)
        #expect(events.count { $0.name == "stream-back" } == 10)
        #expect(all.allSatisfy { $0.mean > 20 })
        try driver.stop()
        peer.kill()
    }

    @Test(.needsFFmpeg) func losesASenderThatFreezesAndTakesItBack() throws {
        let port = try Peer.freePort()
        let peer = try Peer.ffmpeg(to: "udp://127.0.0.1:\(port)?pkt_size=1316")
        let driver = try Self.connect("udp://127.0.0.1:\(port)", #""stallSeconds": 0.5"#)
        var all = try Self.pictures(driver, count: 10)
        peer.freeze()
        all += try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "recovering" }
        #expect(
            driver.takeEvents().contains {
                $0.name == "stream-lost"
                    && $0.text
                        == "'udp://127.0.0.1:\(port)' is lost: no video for 0.5 s. It is opened again when it is back."
            })
        all += try Self.pictures(driver, count: 5)
        peer.thaw()
        all += try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "streaming" }
        all += try Self.pictures(driver, count: 5)
        #expect(Self.rises(all))
        try driver.stop()
        peer.kill()
    }

    @Test(.needsFFmpeg) func scalesAStreamThatComesBackWithAnotherSize() throws {
        let port = try Peer.freePort()
        let url = "tcp://127.0.0.1:\(port)"
        var peer = try Peer.ffmpeg(to: url + "?listen=1")
        let driver = try Self.connect(url)
        _ = try Self.pictures(driver, count: 5)
        peer.kill()
        _ = try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "recovering" }
        peer = try Peer.ffmpeg(to: url + "?listen=1", size: "320x180")
        _ = try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "streaming" }
        let pictures = try Self.pictures(driver, count: 5)
        #expect(pictures.allSatisfy { $0.mean > 20 })
        #expect(driver.takeEvents().contains { $0.text == "The pictures are 320x180 and are scaled to 160x120." })
        try driver.stop()
        peer.kill()
    }

    /// White in full range, in a chain that was planned for video range and square pixels.
    @Test(.needsFFmpeg) func convertsAStreamOfAnotherRangeAndShapeThanPlanned() throws {
        let port = try Peer.freePort()
        let url = "tcp://127.0.0.1:\(port)"
        let driver = try Self.driver(
            url, ##""ifMissing": "wait", "size": "160x120", "whileLost": "slate", "slateColor": "#000000""##)
        let peer = try Peer.ffmpeg(
            to: url + "?listen=1",
            encoder: ["-vf", "drawbox=t=fill:color=white,setsar=4/3,scale=out_range=pc", "-pix_fmt", "yuvj420p"])
        // The planned format shows the pictures as 160x90: three quarters are white.
        let mean = 16 + (235 - 16) * 3 / 4
        let pictures = try Self.pictures(driver, seconds: 60) { ($0.last?.mean ?? 0) > 100 }
        #expect(abs((pictures.last?.mean ?? 0) - mean) <= 3, "\(pictures.last?.mean ?? 0)")
        #expect(
            driver.takeEvents().contains {
                $0.name == "color-changed" && $0.text.hasPrefix("The pictures' colour is full ")
                    && $0.text.contains("and is converted to video 1-1-1")
            })
        try driver.stop()
        peer.kill()
    }

    @Test(.needsFFmpeg) func holdsThePictureOfAStreamThatComesBackWithoutIt() throws {
        let port = try Peer.freePort()
        let url = "tcp://127.0.0.1:\(port)"
        var peer = try Peer.ffmpeg(to: url + "?listen=1")
        let driver = try Self.connect(url, #""analyzeSeconds": 0.5"#)
        _ = try Self.pictures(driver, count: 5)
        peer.kill()
        _ = try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "recovering" }
        _ = driver.takeEvents()
        let sound = try Peer(
            try #require(Tool.ffmpeg),
            [
                "-nostdin", "-v", "quiet", "-re", "-f", "lavfi", "-i", "sine=duration=60", "-c:a", "aac", "-f",
                "mpegts",
                url + "?listen=1",
            ])
        var said: [String] = []
        _ = try Self.pictures(driver) { _ in
            said += driver.takeEvents().filter { $0.name == "stream-refused" }.map(\.text)
            return said.contains { $0.contains("'\(url)' has no video that can be decoded") }
        }
        #expect(try Self.pictures(driver, count: 10).allSatisfy { $0.mean > 20 })
        #expect(Self.figure(driver, "state")?.asString == "recovering")
        sound.kill()
        peer = try Peer.ffmpeg(to: url + "?listen=1")
        _ = try Self.pictures(driver) { _ in Self.figure(driver, "state")?.asString == "streaming" }
        try driver.stop()
        peer.kill()
    }

    @Test(.needsFFmpeg) func givesAccessUnitsFromAKeyframeOnAndAfterALossToo() throws {
        let port = try Peer.freePort()
        let url = "tcp://127.0.0.1:\(port)"
        let reordering = ["-tune", "film", "-bf", "2"]
        var peer = try Peer.ffmpeg(to: url + "?listen=1", encoder: reordering)
        let driver = try Self.connect(url, #""decode": false"#)
        let format = try #require(driver.outputFormat?.encoded)
        #expect(format.reorderDepth == 2 && !format.parameterSets.isEmpty)
        var last: MediaTime?
        var jumps = 0
        func take(_ count: Int) throws {
            let limit = Date() + 120
            for number in 0..<count {
                while true {
                    if let unit = driver.takeAccessUnit() {
                        #expect(number > 0 || unit.isKeyframe)
                        #expect(unit.dts <= unit.pts && (last.map { $0 < unit.dts } ?? true))
                        #expect((unit.pts - unit.dts).seconds <= 0.2)
                        // Each call gives one unit at most: what has jumped since the last one is this one.
                        let jumped = Self.jumps(driver) > jumps
                        #expect(unit.isDiscontinuity == (number == 0 && last != nil || jumped))
                        (last, jumps) = (unit.dts, Self.jumps(driver))
                        break
                    }
                    try #require(Date() < limit)
                    _ = try driver.produce()
                }
            }
        }
        try take(30)
        peer.kill()
        while Self.figure(driver, "state")?.asString == "streaming" { _ = try driver.produce() }
        while driver.takeAccessUnit() != nil {}
        peer = try Peer.ffmpeg(to: url + "?listen=1", encoder: reordering)
        try take(30)
        #expect(try Self.seconds { try driver.stop() } < 30)
        peer.kill()
    }

    @Test(.needsFFmpeg) func failsWithoutWhatIsShownMeanwhile() throws {
        let port = try Peer.freePort()
        let peer = try Peer.ffmpeg(to: "tcp://127.0.0.1:\(port)?listen=1")
        let driver = try Self.connect("tcp://127.0.0.1:\(port)", #""whileLost": "stop""#)
        _ = try Self.pictures(driver, count: 5)
        peer.kill()
        #expect {
            _ = try Self.pictures(driver) { _ in false }
        } throws: {
            FrameHostError.wrap($0).description.contains(
                "'tcp://127.0.0.1:\(port)' is lost: its stream has ended. Check its server or sender. To keep the chain running until the stream is back, set \"whileLost\": \"hold\"."
            )
        }
        try driver.stop()
    }

    @Test(.needsFFmpeg) func outlivesGarbageAmongThePackets() throws {
        let port = try Peer.freePort()
        let peer = try Peer.ffmpeg(to: "udp://127.0.0.1:\(port)?pkt_size=1316")
        let driver = try Self.connect("udp://127.0.0.1:\(port)")
        var all = try Self.pictures(driver, count: 5)
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        for round in 0..<400 {
            // Random bytes, and every other time the begin of a transport stream's packet.
            var bytes = (0..<1316).map { _ in UInt8.random(in: 0...255) }
            if round % 2 == 0 { for packet in 0..<7 { bytes[188 * packet] = 0x47 } }
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if round % 20 == 0 { all += try Self.pictures(driver, count: 1) }
        }
        all += try Self.pictures(driver, seconds: 60) {
            $0.count > 20 && Self.figure(driver, "state")?.asString == "streaming"
        }
        #expect(Self.rises(all))
        try driver.stop()
        peer.kill()
    }
}
