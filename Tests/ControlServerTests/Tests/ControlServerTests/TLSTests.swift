// SPDX-License-Identifier: Apache-2.0

import Foundation
import ServerAccess
import Testing

@testable import ControlServer
@testable import FrameCore

/// The server with a certificate of its own, as Python's TLS sees it.
@Suite(.serialized) struct TLSTests {
    private struct Fault: Error, CustomStringConvertible { var description: String }

    @discardableResult private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        let (output, faults) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = faults
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let said = faults.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Fault(description: String(decoding: said, as: UTF8.self)) }
        return String(decoding: text, as: UTF8.self)
    }

    private static let script = """
        import base64, http.client, json, socket, ssl, sys
        port, certificate = int(sys.argv[1]), sys.argv[2]
        context = ssl.create_default_context(cafile=certificate)

        def ask(method, path, body=None, **fields):
            connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=60)
            fields = {name.replace("_", "-"): value for name, value in fields.items()}
            if body is not None:
                fields["Content-Type"] = "application/json"
            connection.request(method, path, body=body, headers=fields)
            answer = connection.getresponse()
            return answer.status, answer.read()

        basic = "Basic " + base64.b64encode(b"anna:secret").decode()
        told = {}
        told["stranger"] = ask("GET", "/api/v1/status")[0]
        told["basic"] = ask("GET", "/api/v1/status", Authorization=basic)[0]
        told["page"] = ask("GET", "/")[0]
        status, text = ask("POST", "/api/v1/login", json.dumps({"name": "anna", "password": "secret"}),
                           Origin=f"https://localhost:{port}", Sec_Fetch_Site="same-origin")
        told["login"] = status
        session = json.loads(text)["session"]
        told["session"] = ask("GET", "/api/v1/status", Authorization=f"Bearer {session}")[0]
        told["http origin"] = ask("GET", "/api/v1/status", Authorization=basic, Origin=f"http://localhost:{port}")[0]

        with socket.create_connection(("localhost", port), timeout=60) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as secure:
                secure.sendall((f"GET /api/v1/live HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n"
                    f"Origin: https://localhost:{port}\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n"
                    f"Sec-WebSocket-Protocol: framehost.v1, framehost.token.{session.encode().hex()}\\r\\n\\r\\n").encode())
                answer = b""
                while b"\\r\\n\\r\\n" not in answer:
                    answer += secure.recv(1000)
                told["socket"] = answer.split(b"\\r\\n")[0].decode()
                # A masked ping message of the protocol, and its answer.
                text = b'{"ping":5}'
                secure.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
                answer = answer.split(b"\\r\\n\\r\\n", 1)[1]
                while b"pong" not in answer:
                    answer += secure.recv(1000)

        with socket.create_connection(("localhost", port), timeout=60) as raw:
            raw.sendall(f"GET / HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n".encode())
            answer = b""
            while True:
                part = raw.recv(1000)
                if not part:
                    break
                answer += part
            told["plain"] = answer.split(b"\\r\\n")[0].decode()
        print(json.dumps(told, sort_keys=True))
        """

    @Test func speaksTLSAndNothingElse() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.path
        try Self.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "\(path)/key.pem",
                "-out",
                "\(path)/certificate.pem",
            ])
        try Data("anna:watch:secret\n".utf8).write(to: folder.appending(path: "users"))
        let running = try RunningServer(
            {
                $0.users = "users"
                $0.certificate = "certificate.pem"
                $0.key = "key.pem"
            }, folder: path)
        #expect(
            running.run.state.withLock { $0.posted.first }
                == #"control-listening {"url":"https://127.0.0.1:\#(running.port)/","port":\#(running.port),"needsToken":false,"hasUsers":true}"#
        )
        let told = try Self.run("/usr/bin/python3", ["-c", Self.script, "\(running.port)", "\(path)/certificate.pem"])
        #expect(
            told
                == #"{"basic": 200, "http origin": 403, "login": 200, "page": 200, "plain": "HTTP/1.1 400 Bad Request", "session": 200, "socket": "HTTP/1.1 101 Switching Protocols", "stranger": 401}"#
                + "\n")
    }

    @Test func saysWhichFileIsWrongBeforeTheRun() throws {
        var options = ControlServerOptions()
        (options.certificate, options.key) = ("none.pem", "none.pem")
        #expect(throws: FrameHostError.self) { try ControlServer(options: options).check(folder: "/nowhere") }
        options.key = nil
        #expect(throws: OptionFault.self) { try options.validate() }
        #expect(
            ControlServer(options: options).readsFiles(folder: "/chains") == ["/chains/none.pem"])
    }

    /// Passwords would be read on the way.
    @Test func warnsOfPasswordsWithoutTLS() throws {
        setenv("FRAMEHOST_TLS_USERS", "anna:watch:secret", 1)
        defer { unsetenv("FRAMEHOST_TLS_USERS") }
        let open = try RunningServer {
            $0.listen = "0.0.0.0:0"
            $0.users = "env:FRAMEHOST_TLS_USERS"
        }
        #expect(open.run.state.withLock { $0.posted.contains { $0.hasPrefix("control-unencrypted ") } })
        let own = try RunningServer { $0.users = "env:FRAMEHOST_TLS_USERS" }
        #expect(!own.run.state.withLock { $0.posted.contains { $0.hasPrefix("control-unencrypted ") } })
    }

    @Test func reportsFailedLogins() throws {
        setenv("FRAMEHOST_TLS_USERS", "anna:watch:secret", 1)
        defer { unsetenv("FRAMEHOST_TLS_USERS") }
        let running = try RunningServer { $0.users = "env:FRAMEHOST_TLS_USERS" }
        let client = try running.connect()
        try client.ask("GET /api/v1/status", port: running.port, "Authorization: Basic YW5uYTpndWVzcw==")
        #expect(try client.answer().hasPrefix("HTTP/1.1 401 "))
        let deadline = Date() + 60
        func posted() -> String? {
            running.run.state.withLock { $0.posted.first { $0.hasPrefix("login-failed ") } }
        }
        while posted() == nil, Date() < deadline { usleep(10_000) }
        #expect(posted() == #"login-failed {"address":"127.0.0.1","failures":1,"failuresInAll":1,"name":"anna"}"#)
    }
}
