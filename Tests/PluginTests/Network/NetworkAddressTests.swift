// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import FileSource

@Suite struct NetworkAddressTests {
    @Test func knowsItsServer() throws {
        let address = try NetworkAddress("rtsp://cam.example/live?a=1")
        for same in ["rtsp://CAM.example:554/other", "rtsp://cam.example", "rtsp://me:it@cam.example/x"] {
            #expect(address.isServer(of: same), "\(same)")
        }
        for other in [
            "rtsp://cam.example:555/live", "rtsp://cam.example.evil/live", "rtsp://evil/cam.example",
            "rtsps://cam.example/live",
            "http://cam.example/live", "rtsp://cam.example@evil/live", "cam.example", "", "rtsp://",
        ] {
            #expect(!address.isServer(of: other), "\(other)")
        }
    }

    private func fault(_ url: String) -> String {
        do throws(OptionFault) {
            _ = try NetworkAddress(url)
            return ""
        } catch {
            return "\(error.what) \(error.remedy)"
        }
    }

    @Test(arguments: [
        ("rtsp://camera:554/a/b?token=geheim", "rtsp://camera:554/a/b"), ("HTTP://h/x.m3u8#f", "http://h/x.m3u8"),
        ("http://h/t0k3n/x.m3u8", "http://h/…"),
        ("udp://@239.1.2.3:5000", "udp://@239.1.2.3:5000"), ("udp://:5000", "udp://:5000"),
        ("udp://:65535", "udp://:65535"), ("tcp://h:1", "tcp://h:1"),
        ("srt://h:9000?passphrase=geheim", "srt://h:9000"), ("rtsp://[::1]:8554/live", "rtsp://[::1]:8554/live"),
        ("http://h?a@b", "http://h"), ("rtmp://h/app/x", "rtmp://h/app/…"),
        ("rtsp://h/user=admin&password=geheim&channel=1", "rtsp://h/user=…&password=…&channel=…"),
        ("rtsp://name:1/geheim@h/", "rtsp://…"),
    ]) func showsNoSecret(url: String, shown: String) throws {
        #expect(try NetworkAddress(url).shown == shown)
    }

    @Test(arguments: ["rtsp://name:geheim@h/a", "http://geheim@h", "udp://a:geheim@:5", "rtsp://a:ge@heim@h/"])
    func refusesALoginWithoutQuotingIt(url: String) {
        #expect(fault(url).hasPrefix("'url' contains a login"))
        #expect(!fault(url).contains("heim"))
    }

    @Test(arguments: [
        "", "file:///etc/passwd", "concat:a|b", "rtsp://", "rtsp:///a", "udp://@", "gopher://h",
        "rtsp://h/a b",
        "rtsp://h/\0", "rtsp://name:ge/heim@h/", "rtsp://h:12345678/", "rtsp://[::1/a", "http://?a",
        "rtsp://h/password=…",
    ]) func refusesWhatIsNoAddressOfAStream(url: String) {
        #expect(fault(url).contains("'url'"))
        #expect(!fault(url).contains("heim"))
    }

    @Test func quotesWhatCannotBeALogin() {
        #expect(
            fault("clip.mp4")
                == "'clip.mp4' must start with rtsp, rtsps, rtmp, rtmps, srt, http, https, udp or tcp, followed by :// Write it like \"rtsp://192.168.1.7:554/stream\"."
        )
        #expect(fault("viewer:heim@h/a").hasPrefix("'url' must start with rtsp"))
        #expect(fault("h/a?token=heim").hasPrefix("'url' must start with rtsp"))
    }

    @Test(arguments: [
        "udp://:99999", "udp://:0", "rtsp://h:65536/a", "http://[::1]:70000/", "tcp://h:99999999999999999999",
    ])
    func refusesAPortThatThereCannotBe(url: String) {
        #expect(
            fault(url)
                == "the port in 'url' must be from 1 to 65535 Write it like \"rtsp://192.168.1.7:554/stream\". With rtsp, rtmp or http, the port can be left out."
        )
    }

    @Test func putsTheLoginInForLibavformatAlone() throws {
        let login = ServerLogin(name: "a b", password: "p@ss:/?#%é")
        #expect(
            try NetworkAddress("rtsp://h:1/x?y").full(login) == "rtsp://a%20b:p%40ss%3A%2F%3F%23%25%C3%A9@h:1/x?y")
        #expect(try NetworkAddress("srt://h:1").full(login) == "srt://h:1")
        #expect(!"\(login) \(String(reflecting: login))".contains("p@ss"))
    }

    @Test func hidesLoginAndQueryInOthersWords() throws {
        let address = try NetworkAddress("http://h/x?token=abc")
        let login = ServerLogin(name: "viewer", password: "p@ss")
        let said = "GET http://viewer:p%40ss@h/x?token=abc failed, viewer:p@ss, p@ss"
        #expect(address.hide(login, in: said) == "GET http://h/x failed, ***, ***")
        #expect(address.hide(nil, in: "plain") == "plain")
    }

    @Test(arguments: [
        (
            #""login": "env:FRAMEHOST_NO_SUCH_VARIABLE""#,
            "the environment variable 'FRAMEHOST_NO_SUCH_VARIABLE' is not set"
        ),
        (#""login": "/nowhere/login""#, "a file or an environment variable, and there is no such file"),
        (#""login": """#, "'login' is empty"),
        (#""caFile": "a.pem""#, "'caFile' is set, but rtsp has no certificates"),
        (#""caFile": "a.pem", "verify": false"#, "'caFile' is set, but rtsp has no certificates"),
        (#""caFile": """#, "'caFile' is empty"),
        (#""caFile": "a\u0000""#, "'caFile' must not contain the character U+0000. Remove its \\u0000."),
        (#""decode": false, "ifMissing": "wait", "codec": "h264""#, "'codec' says what a stream is"),
        (#""codec": "h264", "size": "64x64""#, "'codec' says what a stream is"),
        (#""decode": false, "whileLost": "slate""#, "no encoder"),
        (#""decode": false, "size": "64x64""#, "'size' needs decoded pictures"),
        (#""size": "63x64""#, "even sides"),
        (#""bufferBytes": 1e300"#, "bufferBytes"), (#""connectSeconds": 1e18"#, "connectSeconds"),
        (#""stallSeconds": -1"#, "stallSeconds"), (#""latencyMs": 99999999999"#, "latencyMs"),
    ]) func refusesOptionsThatDoNotFit(option: String, part: String) {
        #expect {
            _ = try StageDriver(NetworkSource.self, options: #"{ "url": "rtsp://127.0.0.1:1/a", \#(option) }"#)
        } throws: {
            (($0 as? FrameHostErrors)?.errors.map(\.description).joined() ?? "\($0)").contains(part)
        }
    }

    /// rtsps is refused without `"verify": false`.
    @Test(arguments: [("https", "Leave one of the two out."), ("rtsps", "Leave 'caFile' out.")])
    func saysWhichOfTwoOptionsCanBeLeftOut(scheme: String, remedy: String) {
        #expect {
            _ = try StageDriver(
                NetworkSource.self,
                options: #"{ "url": "\#(scheme)://127.0.0.1:1/a", "caFile": "a.pem", "verify": false }"#)
        } throws: {
            (($0 as? FrameHostErrors)?.errors.map(\.description).joined() ?? "\($0)").hasSuffix(
                "\"verify\": false trusts all. \(remedy)")
        }
    }
}
