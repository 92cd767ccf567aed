// SPDX-License-Identifier: Apache-2.0

import Foundation
import ServerAccess
import Testing

@testable import ControlServer

@Suite struct GateTests {
    private func gate(_ listen: String = "127.0.0.1:8080", hosts: [String] = [], token: String? = nil) -> Gate {
        let address = ListenAddress(listen)!
        return Gate(address: address, port: address.port, hosts: hosts, token: token.flatMap { AccessToken($0) })
    }

    private func status(_ gate: Gate, host: String?, _ fields: [(String, String)] = [], method: String = "GET") -> Int {
        var head = RequestHead(method: method, target: "/", host: host)
        head.fields = fields.map { ($0.0, $0.1) }
        return gate.refusal(of: head)?.status ?? 200
    }

    @Test(arguments: [
        ("127.0.0.1:8080", 200), ("localhost:8080", 200), ("LOCALHOST:8080", 200), ("[::1]:8080", 200),
        ("[0:0:0:0:0:0:0:1]:8080", 200), ("localhost.:8080", 200),
        ("127.0.0.1", 421), ("127.0.0.1:8081", 421), ("rebound.example:8080", 421), ("127.0.0.2:8080", 421),
        ("localhost.rebound.example:8080", 421), ("", 421), ("127.0.0.1:8080@x", 421), ("[::1]", 421),
        ("localhost:08080x", 421), ("localhost:", 421),
    ]) func takesItsOwnNamesOnly(host: String, expected: Int) { #expect(status(gate(), host: host) == expected) }

    @Test func refusesARequestWithoutHost() { #expect(status(gate(), host: nil) == 421) }

    @Test func takesConfiguredNames() {
        let gate = gate(hosts: ["studio.local", "cam.example:443"])
        #expect(status(gate, host: "studio.local:8080") == 200)
        #expect(status(gate, host: "Studio.Local") == 200)
        #expect(status(gate, host: "cam.example:443") == 200)
        #expect(status(gate, host: "cam.example:8080") == 421)
    }

    @Test func takesAnyAddressWhereItListensOnAll() {
        let gate = gate("0.0.0.0:8080", token: "0123456789abcdef")
        let token = [("authorization", "Bearer 0123456789abcdef")]
        #expect(status(gate, host: "192.0.2.7:8080", token) == 200)
        #expect(status(gate, host: "192.0.2.7:80", token) == 421)
        #expect(status(gate, host: "rebound.example:8080", token) == 421)
    }

    @Test(arguments: [
        ("origin", "http://127.0.0.1:8080", 200), ("origin", "HTTP://127.0.0.1:8080", 200),
        ("origin", "http://127.0.0.1:8081", 403), ("origin", "http://localhost:8080", 403),
        ("origin", "https://127.0.0.1:8080", 403), ("origin", "null", 403), ("origin", "http://evil.example", 403),
        ("origin", "http://127.0.0.1:8080.evil.example", 403),
        ("sec-fetch-site", "same-origin", 200), ("sec-fetch-site", "none", 200), ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403), ("sec-fetch-site", "", 403),
    ]) func keepsOutPagesOfOtherOrigins(name: String, value: String, expected: Int) {
        for method in ["GET", "POST", "HEAD"] {
            #expect(status(gate(), host: "127.0.0.1:8080", [(name, value)], method: method) == expected)
        }
    }

    @Test func takesPagesOfAConfiguredNameBehindTLS() {
        let gate = gate(hosts: ["cam.example"])
        #expect(status(gate, host: "cam.example", [("origin", "https://cam.example")]) == 200)
        #expect(status(gate, host: "cam.example", [("origin", "https://other.example")]) == 403)
    }

    /// Browsers leave out the port that belongs to the scheme.
    @Test func takesANameThatWasConfiguredWithTheProxysPort() {
        let gate = gate(hosts: ["cam.example:443", "studio.example:8443"])
        #expect(status(gate, host: "cam.example", [("origin", "https://cam.example")]) == 200)
        #expect(status(gate, host: "cam.example:443", [("origin", "https://cam.example:443")]) == 200)
        #expect(status(gate, host: "cam.example:8080") == 421)
        #expect(status(gate, host: "studio.example", [("origin", "https://studio.example")]) == 421)
        #expect(status(gate, host: "studio.example:8443", [("origin", "https://studio.example:8443")]) == 200)
        #expect(status(gate, host: "studio.example:8443", [("origin", "http://studio.example:8443")]) == 200)
        #expect(status(gate, host: "studio.example:8443", [("origin", "https://studio.example")]) == 403)
        #expect(status(gate, host: "studio.example:443", [("origin", "https://studio.example:443")]) == 421)
        // Port 443 is not that of http.
        #expect(status(gate, host: "cam.example", [("origin", "http://cam.example")]) == 403)
    }

    @Test(arguments: [
        (nil, 401), ("", 401), ("Bearer", 401), ("Bearer ", 401), ("Bearer 0123456789abcdeX", 401),
        ("Bearer 0123456789abcde", 401), ("Bearer 0123456789abcdef0", 401), ("Basic 0123456789abcdef", 401),
        ("0123456789abcdef", 401), ("Bearer 0123456789abcdef", 200), ("bearer  0123456789abcdef", 200),
    ]) func demandsTheTokenWhereThereIsOne(field: String?, expected: Int) {
        let gate = gate(token: "0123456789abcdef")
        #expect(status(gate, host: "127.0.0.1:8080", field.map { [("authorization", $0)] } ?? []) == expected)
    }

    @Test(arguments: [
        ("application/json", 200), ("Application/JSON; charset=utf-8", 200), ("application/json ;x=y", 200),
        ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/jsonp", 415), ("", 415),
    ]) func takesBodiesOfJSONOnly(type: String, expected: Int) {
        #expect(
            status(
                gate(), host: "127.0.0.1:8080", [("content-type", type), ("content-length", "2")], method: "POST")
                == expected)
        #expect(
            status(
                gate(), host: "127.0.0.1:8080", [("content-type", type), ("transfer-encoding", "chunked")],
                method: "POST") == expected)
    }

    @Test func saysWhatIsWrongAndWhatToDo() {
        let refusal = gate().refusal(of: RequestHead(method: "GET", target: "/", host: "rebound.example:8080"))
        #expect(refusal?.what == "'rebound.example:8080' is not a name of this server")
        #expect(refusal?.remedy == "Use the server's address, or add 'rebound.example' to 'hosts' of 'control'.")
        func remedy(_ name: String, _ value: String) -> String? {
            var head = RequestHead(method: "GET", target: "/", host: "127.0.0.1:8080")
            head.fields = [(name, value)]
            return gate(hosts: ["cam.example"]).refusal(of: head)?.remedy
        }
        // As from a proxy that does not pass on Host.
        #expect(
            remedy("origin", "https://cam.example")
                == "Open the server's own address. A proxy with TLS must pass on the field Host with the port that browsers use, and 'hosts' of 'control' must have that name, with that port or without one."
        )
        #expect(remedy("sec-fetch-site", "cross-site") == "Open the server's own address.")
        let challenge = gate(token: "0123456789abcdef").refusal(
            of: RequestHead(method: "GET", target: "/", host: "127.0.0.1:8080"))
        #expect(challenge?.fields["WWW-Authenticate"] == #"Bearer realm="framehost""#)
    }
}

@Suite struct ListenAddressTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1:8080", true, false), ("[::1]:0", "[::1]:0", true, false),
        ("localhost:9000", "127.0.0.1:9000", true, false), ("0.0.0.0:8080", "0.0.0.0:8080", false, true),
        ("[::]:8080", "[::]:8080", false, true), ("192.0.2.1:80", "192.0.2.1:80", false, false),
        ("127.9.9.9:80", "127.9.9.9:80", true, false), ("[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true, false),
    ]) func readsAddressAndPort(text: String, authority: String, isLoopback: Bool, isWildcard: Bool) throws {
        let address = try #require(ListenAddress(text))
        #expect(address.authority == authority)
        #expect(address.isLoopback == isLoopback)
        #expect(address.isWildcard == isWildcard)
    }

    @Test(arguments: [
        "", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1",
        "::1:8080", "[::1]", "[127.0.0.1]:80", "studio.local:80", "127.1:80", "127.0.0.1:80 ", "[::1:80", "[]:80",
    ]) func refusesWhatIsNone(text: String) { #expect(ListenAddress(text) == nil) }
}

@Suite struct AccessTokenTests {
    @Test(arguments: [
        "short", "0123456789abcde", "0123456789abcde f", "0123456789abcdeä", String(repeating: "x", count: 257), "",
    ]) func refusesWhatIsTooWeakOrCannotBeSent(text: String) { #expect(AccessToken(text) == nil) }

    @Test func neverShowsItself() throws {
        let token = try #require(AccessToken("0123456789abcdef"))
        #expect("\(token)" == "a token")
        #expect(String(reflecting: token) == "a token")
    }

    @Test func readsTheFirstLineOfAFile() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "token-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func fault(_ name: String) -> String {
            do {
                return "\(try AccessToken.read(name, folder: folder.path))"
            } catch { return "\(error)" }
        }
        for (name, text) in [
            ("good", "0123456789abcdef\r\nmore\n"), ("short", "secret\n"),
            ("large", String(repeating: "s", count: 2 << 20)),
        ] { try Data(text.utf8).write(to: folder.appending(path: name)) }
        #expect(try AccessToken.read("good", folder: folder.path).matches("0123456789abcdef"))
        #expect(
            fault("short")
                == "tokenFile: the first line of '\(folder.path)/short' must be a token: \(AccessToken.rule). \(AccessToken.remedy)"
        )
        #expect(
            fault("large")
                == "tokenFile: the file '\(folder.path)/large' must have at most 1048576 bytes, but has 2097152. Check that 'tokenFile' names the right file."
        )
        #expect(
            fault("none")
                == "tokenFile: the file '\(folder.path)/none' does not exist. Create it, or correct 'tokenFile'.")
        #expect(
            fault("fedcba9876543210")
                == "tokenFile: 'tokenFile' must name a file with the token, and there is no such file. Write the token into a file, and set 'tokenFile' to the path of that file."
        )
        mkfifo(folder.appending(path: "fifo").path, 0o600)
        #expect(
            fault("fifo")
                == "tokenFile: '\(folder.path)/fifo' must be a regular file, but is a pipe. Name a regular file."
        )
    }
}

@Suite struct TargetTests {
    @Test(arguments: [
        ("/", [""]), ("/api/v1/stages/cam", ["api", "v1", "stages", "cam"]),
        ("/api/v1/stages/a%2Fb", ["api", "v1", "stages", "a/b"]), ("/a%20b", ["a b"]), ("/%C3%A9", ["é"]),
        ("/a/../b", ["a", "..", "b"]), ("/a//b/", ["a", "", "b", ""]),
    ]) func splitsThenDecodes(text: String, path: [String]) { #expect(Target(text)?.path == path) }

    @Test(arguments: [
        "", "*", "api", "http://evil.example/healthz", "/%", "/%2", "/%zz", "/%FF", "/%00", "/%0a", "/%C3%28", "/\u{7}",
        "/" + String(repeating: "a", count: 9000),
    ]) func refusesWhatIsNoPath(text: String) { #expect(Target(text) == nil) }

    @Test func readsTheQuery() {
        #expect(
            Target("/p?width=640&fit=fill&x&y=a%26b=c&")?.query == [
                Target.Pair(name: "width", value: "640"), Target.Pair(name: "fit", value: "fill"),
                Target.Pair(name: "x", value: ""), Target.Pair(name: "y", value: "a&b=c"),
            ])
    }

    /// As `framehost ctl` and curl write them.
    @Test(arguments: [
        ("cam", "cam"), ("a%2Fb", "a/b"), ("%C3%A4%20%c3%bc", "ä ü"), ("100%20%25", "100 %"), ("x%3Fy%23z", "x?y#z"),
    ]) func readsWhatIsEncoded(encoded: String, text: String) {
        #expect(Target.decoded(encoded[...]) == text)
    }
}

@Suite struct ControlServerOptionsTests {
    private func fault(_ change: (inout ControlServerOptions) -> Void) -> String? {
        var options = ControlServerOptions()
        change(&options)
        do {
            try options.validate()
            return nil
        } catch { return "\(error)" }
    }

    @Test func takesLoopbackWithoutAToken() { #expect(fault { $0.listen = "[::1]:0" } == nil) }

    @Test func demandsATokenForOtherAddresses() {
        #expect(fault { $0.listen = "0.0.0.0:80" }?.contains("needs a token") == true)
        #expect(
            fault {
                $0.listen = "0.0.0.0:80"
                $0.token = "0123456789abcdef"
            } == nil)
    }

    @Test func showsNoToken() {
        let text = fault { $0.token = "secret" } ?? ""
        #expect(text.contains("must be 16 to 256"))
        #expect(!text.contains("secret"))
    }

    @Test(arguments: ["a b", "http://x", "", "x/y", "a:b:c"]) func refusesWhatIsNoHost(name: String) {
        #expect(fault { $0.hosts = [name] }?.contains("must be a host name") == true)
    }
}
