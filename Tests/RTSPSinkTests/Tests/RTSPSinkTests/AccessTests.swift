// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import ServerAccess
import Testing

@testable import RTSPSink

@Suite struct AccessTests {
    // MARK: Hashes and Base64

    /// RFC 1321, A.5, and FIPS 180-4 examples.
    @Test func hashesAsTheStandardsSay() {
        func md5(_ text: String) -> String { ASCII.hex(MessageDigest.md5(Array(text.utf8))) }
        func sha(_ text: String) -> String { ASCII.hex(MessageDigest.sha256(Array(text.utf8))) }
        #expect(md5("") == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(md5("abc") == "900150983cd24fb0d6963f7d28e17f72")
        #expect(
            md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890")
                == "57edf4a22be3c955ac49da2e2107b67a")
        #expect(sha("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(sha("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("\u{fb}\u{ff}", "w7vDvw=="),
    ])
    func codesBase64(text: String, code: String) {
        #expect(Base64.encode(Array(text.utf8)) == code)
        #expect(Base64.decode(code) == Array(text.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zg==Zg==", "Z===", "Zg=v", "Z g=", "====", "Zh==", "Zm9-"])
    func refusesWhatIsNoBase64(code: String) {
        #expect(Base64.decode(code) == nil)
    }

    // MARK: Addresses

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::"), ("fe80::1%eth0", "fe80::1"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("::ffff:10.1.2.3", "10.1.2.3"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"), ("fd00::", "fd00::"),
        ("1:2:3:4:5:6:0:8", "1:2:3:4:5:6:0:8"),
    ]) func readsAndWritesAddresses(text: String, written: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == written)
        #expect(IPAddress(written) == address)
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.256", "1.2.3.4.5", "01.2.3.4444", ":::", "1::2::3", "12345::", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "g::",
        "::1.2.3", "1.2.3.4::1", ":1",
    ])
    func refusesWhatIsNoAddress(text: String) { #expect(IPAddress(text) == nil) }

    @Test(arguments: [
        ("192.168.1.0/24", "192.168.1.77", true), ("192.168.1.0/24", "192.168.2.1", false),
        ("0.0.0.0/0", "8.8.8.8", true),
        ("0.0.0.0/0", "::1", false), ("::/0", "8.8.8.8", true), ("fd00::/8", "fdff::1", true),
        ("fd00::/8", "fe00::1", false),
        ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.1.2.4", false),
        ("2001:db8::/65", "2001:db8::8000:0:0:1", false),
        ("2001:db8::/65", "2001:db8::7000:0:0:1", true), ("10.0.0.0/8", "::ffff:10.9.9.9", true),
    ]) func knowsWhoIsInARange(range: String, address: String, isIn: Bool) throws {
        #expect(try #require(AddressRange(range)).contains(#require(IPAddress(address))) == isIn)
    }

    @Test(arguments: ["", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.0/8/8", "all", "10.0.0.0/"])
    func refusesWhatIsNoRange(
        text: String
    ) {
        #expect(AddressRange(text) == nil)
    }

    // MARK: Credentials

    @Test func readsCredentialsAndPrintsNone() {
        let read = Credentials.parse("# people\n\nanna:secret:with colon\r\n  bert:\n")
        #expect(read.credentials?.password(of: "anna") == "secret:with colon")
        #expect(read.credentials?.password(of: "bert") == "")
        #expect("\(read.credentials!) \(String(reflecting: read.credentials!))" == "2 users 2 users")
        #expect(Credentials.parse("anna:\u{301}x").credentials?.password(of: "anna") == "\u{301}x")
        #expect(Credentials.parse("anna:x\nbert\n").faultyLine == 2)
        #expect(Credentials.parse(":x").faultyLine == 1)
    }

    /// A file that is cut off could end within a password; a FIFO must not hold the host up.
    @Test func refusesCredentialsThatAreTooManyOrInNoRegularFile() throws {
        let folder = NSTemporaryDirectory() + "credentials-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func fault(_ name: String) -> String {
            do {
                return "\(try CredentialsFile.read(name) { "\(folder)/\($0)" })"
            } catch {
                return "\(error)"
            }
        }
        let line = "anna:secret\n"
        let large = String(repeating: line, count: CredentialsFile.mostBytes / line.utf8.count + 1)
        try large.write(toFile: "\(folder)/large", atomically: false, encoding: .utf8)
        #expect(
            fault("large")
                == "users: the file '\(folder)/large' must have at most 1048576 bytes, but has \(large.utf8.count). Check that 'users' names the right file."
        )
        mkfifo("\(folder)/fifo", 0o600)
        #expect(
            fault("fifo")
                == "users: '\(folder)/fifo' must be a regular file, but is a pipe. Name a regular file."
        )
        #expect(
            fault("env:FRAMEHOST_NO_SUCH_VARIABLE")
                == "users: the environment variable 'FRAMEHOST_NO_SUCH_VARIABLE' is not set. Set it to lines of name:password, or name a file."
        )
        try "anna:secret\nhidden\n".write(toFile: "\(folder)/faulty", atomically: false, encoding: .utf8)
        #expect(
            fault("faulty")
                == "users: line 2 of the file '\(folder)/faulty' must be name:password. Correct that line.")
        try line.write(toFile: "\(folder)/good", atomically: false, encoding: .utf8)
        #expect(fault("good") == "1 users")
    }

    // MARK: Challenge

    static let users = Credentials(["Mufasa": "Circle Of Life"])
    static let url = RTSPURL("rtsp://h:8554/live/trackID=0")!

    static func digest(
        _ scheme: AuthenticationScheme, uri: String, password: String = "Circle Of Life", nonce: String = "n1",
        method: String = "SETUP"
    ) -> String {
        Authorization.digest(
            Authorization.Digest(
                username: "Mufasa", realm: "framehost", nonce: nonce, uri: uri,
                response: Authorization.digestResponse(
                    scheme, name: "Mufasa", password: password, realm: "framehost", nonce: nonce, method: method,
                    uri: uri),
                algorithm: scheme == .sha256 ? "SHA-256" : nil)
        ).text
    }

    /// The example of RFC 2069, 2.4, as corrected by its errata.
    @Test func computesTheDigestOfRFC2069() {
        #expect(
            Authorization.digestResponse(
                .digest, name: "Mufasa", password: "CircleOfLife", realm: "testrealm@host.com",
                nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093",
                method: "GET", uri: "/dir/index.html") == "1949323746fe6a43ef61f9606e7febea")
    }

    /// live555 reads exactly `Digest realm="…", nonce="…"` and then `, stale=`.
    @Test func writesChallengesAsLive555ReadsThem() {
        let challenge = Challenge(scheme: .digest, credentials: Self.users)
        #expect(challenge.header(nonce: "0af") == #"Digest realm="framehost", nonce="0af""#)
        #expect(challenge.header(nonce: "0af", isStale: true) == #"Digest realm="framehost", nonce="0af", stale=TRUE"#)
        #expect(Challenge(scheme: .basic, credentials: Self.users).header(nonce: "0af") == #"Basic realm="framehost""#)
        let sha = Challenge(scheme: .sha256, credentials: Self.users).header(nonce: "0af")
        #expect(sha == #"Digest realm="framehost", nonce="0af", algorithm=SHA-256"#)
    }

    /// The request's URL; VLC signs the stream's with a slash; HappyTime without; Bosch BVMS a relative path.
    @Test(arguments: [
        "rtsp://h:8554/live/trackID=0", "rtsp://h:8554/live/", "rtsp://h:8554/live", "/live", "live/trackID=0",
    ])
    func acceptsTheURLsThatClientsSign(uri: String) {
        for scheme in [AuthenticationScheme.digest, .sha256] {
            let challenge = Challenge(scheme: scheme, credentials: Self.users)
            #expect(
                challenge.judge(Self.digest(scheme, uri: uri), method: "SETUP", url: Self.url, nonce: "n1")
                    == .granted(user: "Mufasa"))
        }
    }

    @Test func tellsWrongFromStale() {
        let challenge = Challenge(scheme: .digest, credentials: Self.users)
        func verdict(_ header: String?) -> Challenge.Verdict {
            challenge.judge(header, method: "SETUP", url: Self.url, nonce: "n1")
        }
        let uri = "rtsp://h:8554/live/"
        #expect(verdict(nil) == .missing)
        #expect(verdict(Self.digest(.digest, uri: uri, nonce: "old")) == .stale)
        #expect(verdict(Self.digest(.digest, uri: uri, password: "x", nonce: "old")) == .wrong)
        #expect(verdict(Self.digest(.digest, uri: uri, password: "x")) == .wrong)
        #expect(verdict(Self.digest(.digest, uri: uri, method: "PLAY")) == .wrong)
        #expect(verdict(Self.digest(.digest, uri: "rtsp://h:8554/other")) == .wrong)
        #expect(verdict(Self.digest(.sha256, uri: uri)) == .wrong)
        #expect(verdict(Authorization.basic(name: "Mufasa", password: "Circle Of Life").text) == .wrong)
        #expect(verdict("Digest") == .wrong)
        #expect(verdict("nonsense") == .wrong)
    }

    @Test func takesBasicWhereThatIsAsked() {
        let challenge = Challenge(scheme: .basic, credentials: Self.users)
        func verdict(_ header: String) -> Challenge.Verdict {
            challenge.judge(header, method: "PLAY", url: Self.url, nonce: "")
        }
        #expect(
            verdict(Authorization.basic(name: "Mufasa", password: "Circle Of Life").text) == .granted(user: "Mufasa"))
        #expect(verdict(Authorization.basic(name: "Mufasa", password: "Circle").text) == .wrong)
        #expect(verdict(Authorization.basic(name: "Simba", password: "").text) == .wrong)
        #expect(verdict("Basic ???") == .wrong)
    }

    @Test func readsWhatItWrites() {
        for text in [Self.digest(.digest, uri: "/a"), Self.digest(.sha256, uri: "/a"), "Basic YTpi"] {
            #expect(Authorization(text)?.text == text)
        }
        #expect(
            Authorization.parameters(#"a="x\"y", b=z ,c="""#)?.map { "\($0.name)=\($0.value)" } == [
                #"a=x"y"#, "b=z", "c=",
            ])
        #expect(Authorization.parameters(String(repeating: "a=b,", count: 40)) == nil)
        #expect(Authorization.parameters("abc") == nil)
    }
}
