// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

extension Tool {
    static let nginx = Tool(name: "nginx")
    static let caddy = Tool(name: "caddy")
}

/// The control server behind a proxy with TLS, with the blocks of docs/control.md as they stand there.
@Suite(.serialized, .needs(.curl), .needs(.openssl)) struct ProxyTests {
    private static let token = "0123456789abcdef"

    private static func block(_ language: String) throws -> String {
        let page = try String(contentsOf: Repository.root.appending(path: "docs/control.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "```\(language)\n")
        guard parts.count == 2, let block = parts[1].components(separatedBy: "\n```").first else {
            throw TestFault("docs/control.md has no block for \(language)")
        }
        return block
    }

    /// The block with what is ours in the place of its ports and files.
    private static func adapted(_ language: String, _ workspace: Workspace, port: Int, to server: String) throws
        -> String
    {
        _ = try Tool.openssl.run(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=cam.example", "-keyout",
            workspace.path("cam.key"), "-out", workspace.path("cam.pem"))
        return try block(language).replacing("8443", with: "\(port)")
            .replacing("127.0.0.1:8080", with: server.replacing("http://", with: ""))
            .replacing("/etc/ssl/cam.example.pem", with: workspace.path("cam.pem"))
            .replacing("/etc/ssl/cam.example.key", with: workspace.path("cam.key"))
    }

    /// Asks as a browser does.
    private static func ask(_ port: Int, _ path: String, _ fields: String..., seconds: Int = 60) throws -> (Int, String)
    {
        let place = "cam.example:\(port)"
        let outcome = try Tool.curl.run(
            [
                "-skN", "--http1.1", "--max-time", "\(seconds)", "--resolve", "\(place):127.0.0.1", "-w",
                "\n%{http_code}",
            ]
                + ["-H", "Origin: https://\(place)"] + fields.flatMap { ["-H", $0] } + ["https://\(place)\(path)"])
        let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
        return (Int(lines.last ?? "") ?? 0, lines.dropLast().joined(separator: "\n"))
    }

    private static func check(_ port: Int, _ proxy: RunningProgram) throws {
        let deadline = Date() + 60
        while try ask(port, "/").0 == 0 {
            guard Date() < deadline else { throw TestFault("the proxy does not answer: \(proxy.error)") }
            proxy.listen(seconds: 0.05)
        }
        let bearer = "Authorization: Bearer \(token)"
        #expect(try ask(port, "/main.js").0 == 200)
        #expect(try ask(port, "/api/v1/status").0 == 401)
        #expect(try ask(port, "/api/v1/status", bearer).0 == 200)
        // What is streamed comes at once.
        #expect(try ask(port, "/api/v1/events", bearer, seconds: 2).1.contains("retry:"))
        let (status, _) = try ask(
            port, "/api/v1/live", bearer, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", seconds: 2)
        #expect(status == 101)
    }

    private static func end(_ proxy: RunningProgram) {
        kill(proxy.pid, SIGKILL)
        _ = try? proxy.finish()
    }

    private static func run(port: Int) throws -> ControlledRun {
        try ControlledRun(control: #""token": "\#(token)", "hosts": ["cam.example:\#(port)"]"#)
    }

    @Test(.needs(.nginx)) func worksBehindNginxAsDocumented() throws {
        let port = try RTSPStream.freePort()
        let run = try Self.run(port: port)
        let folder = run.workspace.folder.path
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
        try run.workspace.write(
            "nginx.conf",
            """
            daemon off; master_process off; pid \(folder)/nginx.pid; error_log stderr;
            events {}
            http { access_log off; \(temporary.joined(separator: " "))
            \(Self.adapted("nginx", run.workspace, port: port, to: run.url))
            }
            """)
        let proxy = try Tool.nginx.start(["-e", "stderr", "-c", run.workspace.path("nginx.conf")])
        defer { Self.end(proxy) }
        try Self.check(port, proxy)
    }

    @Test(.needs(.caddy)) func worksBehindCaddyAsDocumented() throws {
        let port = try RTSPStream.freePort()
        let run = try Self.run(port: port)
        try run.workspace.write(
            "Caddyfile",
            """
            {
                admin off
                auto_https disable_redirects
                skip_install_trust
                storage file_system \(run.workspace.path("caddy"))
            }
            \(Self.adapted("caddyfile", run.workspace, port: port, to: run.url))
            """)
        let proxy = try Tool.caddy.start(["run", "--adapter", "caddyfile", "--config", run.workspace.path("Caddyfile")])
        defer { Self.end(proxy) }
        try Self.check(port, proxy)
    }
}
