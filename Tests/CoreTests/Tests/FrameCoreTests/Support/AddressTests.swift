// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct AddressTests {
    @Test(arguments: [
        // Cameras, recorders, encoders.
        ("rtsp://10.0.0.9:554/stream1", "rtsp://10.0.0.9:554/stream1"),
        ("rtsp://10.0.0.9/Streaming/Channels/101", "rtsp://10.0.0.9/Streaming/Channels/101"),
        ("rtsp://nvr/cam/realmonitor?channel=1&subtype=0", "rtsp://nvr/cam/realmonitor"),
        (
            "rtsp://10.0.0.9/user=admin&password=geheim&channel=1&stream=0.sdp",
            "rtsp://10.0.0.9/user=…&password=…&channel=…&stream=…"
        ),
        ("rtsp://10.0.0.9/user=admin_password=geheim_channel=1_stream=0.sdp", "rtsp://10.0.0.9/user=…"),
        ("rtsp://10.0.0.9/live/password=ge/heim&channel=1", "rtsp://10.0.0.9/live/password=…/…&channel=…"),
        ("rtsp://10.0.0.9/live&geheim", "rtsp://10.0.0.9/…&…"),
        ("rtsp://10.0.0.9/live;geheim", "rtsp://10.0.0.9/live;…"),
        ("rtsp://10.0.0.9/admin:geheim/av0_0", "rtsp://10.0.0.9/…/av0_0"),
        ("rtsp://10.0.0.9/a/live;geheim/x?y", "rtsp://10.0.0.9/a/live;…/…"),
        ("rtsp://10.0.0.9/live;tcp=geheim;a", "rtsp://10.0.0.9/live;tcp=…&…"),
        ("rtsp://10.0.0.9/user%3Dadmin%26password%3Dgeheim", "rtsp://10.0.0.9/…"),
        ("rtmp://live.example/app/geheim", "rtmp://live.example/app/…"),
        ("rtmp://live.example/app playpath=geheim", "rtmp://live.example/app …"),
        ("rtmps://live.example:443/app/geheim?x", "rtmps://live.example:443/app/…"),
        ("rtmp://live.example/app", "rtmp://live.example/app"),
        ("rtmp://live.example//geheim", "rtmp://live.example/…"),
        ("srt://10.0.0.9:9000?passphrase=geheim&streamid=geheim", "srt://10.0.0.9:9000"),
        ("http://10.0.0.9/video.cgi?user=admin&pwd=geheim", "http://10.0.0.9/video.cgi"),
        ("http://10.0.0.9/live1.m3u8", "http://10.0.0.9/live1.m3u8"),
        ("http://10.0.0.9/a8f5geheim", "http://10.0.0.9/…"),
        ("http://h?a@b", "http://h"),
        ("https://cdn.example/geheim/live.m3u8", "https://cdn.example/…"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
        ("udp://@239.1.2.3:5000", "udp://@239.1.2.3:5000"), ("udp://:5000", "udp://:5000"),
        ("file:///clips/a.mp4", "file:///clips/a.mp4"), ("mqtts://broker.example:8883", "mqtts://broker.example:8883"),
        ("mqtt://broker/geheim", "mqtt://broker/…"),
        // Logins, and what may be one.
        ("rtsp://user:geheim@host/a", "rtsp://host/a"), ("RTSP://geheim@host", "rtsp://host"),
        ("rtsp://user:p@geheim@host/", "rtsp://host/"), ("rtsp://user:p/geheim@host/", "rtsp://…"),
        ("rtsp://user:1/geheim@host/", "rtsp://…"), ("rtsp://user:1#geheim@host/", "rtsp://…"),
        ("rtsp://user:1?geheim@host/", "rtsp://…"), ("rtsp://user:1%2Fgeheim%40host/", "rtsp://…"),
        ("rtsp://host/geheim%40host", "rtsp://…"), ("rtsp://user:geheim", "rtsp://…"),
        ("rtsp://user:123456", "rtsp://…"),
        ("rtsp://user:1 geheim@host/", "rtsp://…"),
        // Hosts.
        ("rtsp://[fd00::7]:554/a", "rtsp://[fd00::7]:554/a"),
        ("rtsp://[fe80::1%25eth0]/a", "rtsp://[fe80::1%25eth0]/a"),
        ("rtsp://fd00::7/a", "rtsp://…"), ("rtsp://[geheim/a", "rtsp://…"),
        ("rtsp://bücher.example/a", "rtsp://bücher.example/a"),
        // No addresses.
        ("", ""), ("clip.mp4", "clip.mp4"), ("host/geheim", "host/…"), ("user:geheim@host/a", "…"), ("://geheim", "…"),
        ("my word://geheim", "…"),
    ]) func showsWhereItLeadsAndNoSecret(text: String, shown: String) {
        let address = Address(text)
        #expect(address.description == shown)
        #expect(address.isShownWhole == (text == shown))
        #expect(Address(shown).description == shown, "shown twice")
        var dumped = ""
        dump(address, to: &dumped)
        for words in ["\(address)", String(reflecting: address), dumped] { #expect(!words.contains("geheim")) }
    }

    /// A secret anywhere but where the type says that it shows: host, RTMP application, plain RTSP path.
    @Test func neverShowsAPlantedSecret() {
        var random = Numbers(state: 37)
        let marks = [
            "/", "#", "?", "@", ":", "&", "=", ";", "%40", "%2F", "%3d", "%26", "%25", "+", "!", "$", "'", "\"", "(",
            ",", "~",
            "é", "e\u{301}", "\u{301}", "-", "1", ".", "\\", "[", "]", "{", "|", "^", "`", "<",
        ]
        /// `SEKRET` with other characters around it, as a password has them.
        func secret(_ marks: [String] = marks) -> String {
            func some() -> String { (0..<random.below(4)).map { _ in random.pick(marks) }.joined() }
            return "\(some())SEKRET\(some())"
        }
        for round in 0..<(getenv("FRAMEHOST_SANITIZED") == nil ? 5000 : 500) {
            let scheme = random.pick([
                "rtsp", "rtsps", "RTSP", "rtmp", "rtmps", "srt", "http", "https", "HTTP", "udp", "tcp",
            ])
            let host = random.pick(["h", "10.0.0.9", "cam.example:554", "[::1]:8554", "[fd00::7]"])
            let text =
                switch random.below(8) {
                case 0: "\(scheme)://user:\(secret())@\(host)/x"
                // Before a question mark stands what looks like a host: a name's begin shows, a password's does not.
                case 1: "\(scheme)://\(secret(marks.filter { $0 != "?" && $0 != "#" })):p@\(host)"
                case 2: "\(scheme)://\(host)/a?k=\(secret())"
                case 3: "rtsp://\(host)/\(random.pick(["", "live/"]))user=a&password=\(secret())&channel=1"
                case 4: "rtmp://\(host)/app/\(secret())"
                case 5: "srt://\(host)?passphrase=\(secret())&mode=caller"
                case 6: "http://\(host)/\(secret())/live.m3u8"
                default: "\(scheme)://\(host)#\(secret())"
                }
            let shown = Address(text).description
            #expect(!shown.contains("SEKRET"), "\(round): \(text) shows \(shown)")
            #expect(Address(shown).description == shown, "\(round): \(text): \(shown)")
            let said = Address(text).hiding(in: "Failed to open \(text): it has SEKRET's end, \(text)")
            #expect(!said.contains(text), "\(round): \(said)")
            for sentence in ["'\(text)' is lost: gone", "see \"\(text)\", which", "(\(text))", "url=\(text)"] {
                let said = sentence.hidingAddresses()
                #expect(!said.contains("SEKRET"), "\(round): \(sentence) says \(said)")
            }
        }
    }

    @Test(arguments: [
        ("'rtsp://ip/x' is lost: 3 s", "'rtsp://ip/x' is lost: 3 s"),
        ("Write it like \"rtsp://192.168.1.7:554/stream\".", "Write it like \"rtsp://192.168.1.7:554/stream\"."),
        ("mqtt://HOST:PORT, or mqtts://HOST:PORT", "mqtt://HOST:PORT, or mqtts://HOST:PORT"),
        ("must start with nats:// or tls://", "must start with nats:// or tls://"),
        ("C:/x and C://y", "C:/x and C://y"),
        ("\"rtsp://ip/user=a&password=b c\" must", "\"rtsp://ip/user=…&password=…\" must"),
        ("Opening 'http://h/geheim/1.ts' for reading", "Opening 'http://h/…' for reading"),
        ("--set cam.url=rtmp://h/app/geheim: no", "--set cam.url=rtmp://h/app/…: no"),
        ("two rtmp://a/b/geheim rtmp://c/d/geheim.", "two rtmp://a/b/… rtmp://c/d/…."),
    ]) func hidesAddressesWithinSentences(text: String, shown: String) { #expect(text.hidingAddresses() == shown) }

    /// Values without a scheme.
    @Test(arguments: [
        ("admin:geheim@127.0.0.1/live", "…"), ("admin:my geheim pw@cam", "…"), ("admin:it's \"geheim\"@[::1]", "…"),
        ("admin:a\ngeheim@cam", "…"), ("//admin:geheim@cam", "…"), ("x ://admin:geheim@cam y", "x … y"),
        ("127.0.0.1/live?geheim", "127.0.0.1/…"), ("cam.example:554/live;geheim", "cam.example:554/…"),
        ("localhost/a?geheim", "localhost/…"), ("10.0.0.9/user=a&password=geheim", "10.0.0.9/…"),
        ("rtsp%3A%2F%2Fadmin%3Ageheim%40cam", "…"), ("admin%253Ageheim%2540cam", "…"),
        ("-----BEGIN PRIVATE KEY-----\ngeheim", "…"), ("cam.example/live?geheim", "cam.example/…"),
        ("user=admin&password=geheim", "user=admin&password=…"), ("token=geheim", "token=…"),
        ("see http://h/x/geheim and admin:geheim@cam", "see http://h/… and …"),
        // Nothing that is secret.
        ("clips/cam 1.mp4", "clips/cam 1.mp4"), ("/rec/12:30@door.mp4", "/rec/12:30@door.mp4"),
        ("%Y-%m-%d_%H:%M:%S.mp4", "%Y-%m-%d_%H:%M:%S.mp4"), ("me@example.com", "me@example.com"),
        ("At: me@example.com", "At: me@example.com"), ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("a=b;c", "a=b;c"), ("what?.mp4", "what?.mp4"), ("hw:CARD=PCH,DEV=0", "hw:CARD=PCH,DEV=0"),
        ("A 8:00@Berlin", "A 8:00@Berlin"), ("B 9:30@Anna", "B 9:30@Anna"),
        ("site.north/cam=1/out-01.mp4", "site.north/cam=1/out-01.mp4"), ("front.door/a;01.mp4", "front.door/a;01.mp4"),
        ("50 %", "50 %"), ("192.168.1.7/24", "192.168.1.7/24"), ("[::]:0", "[::]:0"), ("", ""),
    ]) func hidesTheSecretsOfValues(text: String, shown: String) {
        #expect(text.hidingSecrets == shown)
        #expect(shown.hidingSecrets == shown)
        #expect(!text.contains("geheim") || !"'\(shown)'".hidingAddresses().contains("geheim"))
    }

    /// Where a value ends in a sentence, nobody knows who has not seen the value before.
    @Test(arguments: [
        "rtsp://admin:it's geheim 'x' \"y\"@cam/live", "admin:my 'geheim', pw@cam", "admin:a\nb geheim@cam",
        "admin:a\t\u{1b}geheim \\@cam",
    ]) func aSentenceHidesTheValuesThatWereWritten(text: String) {
        WrittenValues.note(["list": [.string(text)]])
        for quoted in [text, text.printable(), JSONNode.string(text).text()] {
            let fault = FrameHostError(.unavailable, what: "'\(quoted)' must be one of 'a' and 'b'")
            #expect(!fault.what.contains("geheim") && fault.what.hasSuffix("' must be one of 'a' and 'b'"), "\(fault)")
        }
        let fault = FrameHostError(.unavailable, what: "'/home/\(text)' does not exist")
        #expect(!fault.what.contains("geheim") && fault.what.contains("/home/"), "\(fault)")
    }

    @Test func aLongHostileTextIsLookedThroughInTime() {
        for piece in ["a:", "@a", "a:a@ ", "%25", "a.b;", "x=", "://", "'a "] {
            let text = String(repeating: piece, count: 20_000)
            let clock = ContinuousClock()
            var length = 0
            let taken = clock.measure { length = text.hidingAddresses().utf8.count + text.hidingSecrets.utf8.count }
            #expect(length > 0 && taken < .seconds(20), "\(piece): \(taken)")
        }
    }

    @Test func hidesItsSecretsInOtherWords() {
        let address = Address("rtsp://h/user=admin&password=gehe%21m&channel=1")
        #expect(address.hiding(["pass word"], in: "admin, gehe%21m, gehe!m, pass word, 1") == "***, ***, ***, ***, 1")
        #expect(Address("rtmp://h/app/strea-mkey").hiding(in: "Not found: strea-mkey") == "Not found: ***")
        #expect(Address("rtsp://h/a").hiding(in: "plain") == "plain")
    }

    /// A password with a quotation mark ends the string of a chain file.
    @Test(arguments: [
        #"{ "url": "rtsp://u:pa"geheim@h/" }"#, #"{ "url": "rtsp://h/password=", geheim: 1 }"#,
        #"{ "url": "rtsp://h/password="-geheim }"#, #"{ "url": "rtsp://h/password=\geheim" }"#,
    ]) func aTextThatIsNoJSONShowsNoSecretEither(text: String) {
        let faults = #expect(throws: FrameHostErrors.self) {
            _ = try JSONReader.read(Array(text.utf8), file: "c.json")
        }
        #expect(faults.map { !$0.description.contains("geheim") } == true, "\(faults?.description ?? "")")
    }

    /// Faults, events, notes: whatever a stage says is shown in this way.
    @Test func holdsForFaultsEventsAndStates() throws {
        let url = "rtsp://h/user=a&password=geheim"
        let fault = FrameHostError(
            .unavailable, place: FaultPlace(argument: "--set cam.url=\(url)", words: url), what: "'\(url)' is away",
            remedy: "Look at \(url).", cause: url)
        let event = Event(
            name: "x", text: "'\(url)' is away.", details: ["url": .string(url), "all": [.string(url), 3]], time: 0)
        let context = StageContext(stageID: "cam")
        context.recovering = "'\(url)' is away"
        context.showFigures { ["peer": .string(url)] }
        context.note("'\(url)' is away")
        for words in [
            "\(fault)", fault.what, fault.remedy, fault.cause, event.text, event.details.text(),
            context.recovering ?? "",
            context.figures?.text() ?? "", context.planNotes[0].text,
        ] {
            #expect(!words.contains("geheim") && words.contains("rtsp://h/user=…&password=…"), "\(words)")
        }
        let options: JSONNode = ["url": .string(url), "servers": [.string("nats://a:geheim@b")], "size": "64x64"]
        #expect(
            options.hidingAddressValues.text()
                == #"{"url":"rtsp://h/user=…&password=…","servers":["nats://b"],"size":"64x64"}"#)
    }
}

/// The same numbers each time (SplitMix64).
private struct Numbers {
    var state: UInt64

    mutating func below(_ limit: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((z ^ (z >> 31)) % UInt64(limit))
    }

    mutating func pick<Element>(_ all: [Element]) -> Element { all[below(all.count)] }
}
