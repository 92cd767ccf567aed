// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The commands that ask a control server, before a server that is another program's, or hostile.
@Suite struct ForeignServerTests {
    /// Answers every request with 200: JSON whose texts have what a terminal obeys, and a page in place of a picture.
    private static let server = #"""
        import http.server, json, sys
        evil = "a\x1b[31mb\x9b2Jc\u202ed\ne: all is well"
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, body = "application/json", json.dumps({"state": evil, "healthy": False, "problems": [evil], "frame": 1, "text": evil,
                    "stages": [{"id": evil, "state": evil, "reason": evil}], evil: evil}, ensure_ascii=False)
                if "/picture" in self.path: kind, body = "text/html", "<html>Welcome to another server</html>"
                if "/events" in self.path: kind, body = "text/event-stream", "data: " + json.dumps({"text": evil}, ensure_ascii=False) + "\n\ndata: {\x1b[2J\n\n"
                body = body.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            do_POST = do_GET
            def log_message(self, *words): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        print("port", server.server_port, flush=True)
        server.serve_forever()
        """#

    /// A server, and its address.
    private func start() throws -> (server: RunningProgram, url: String) {
        let server = try Tool.python.start(["-c", Self.server])
        try server.waitForOutput("\n")
        return (server, "127.0.0.1:\(server.output.split(whereSeparator: \.isWhitespace)[1])")
    }

    @Test(.needs(.python)) func itsTextsDoNotReachTheTerminalAsTheyAre() throws {
        let (server, url) = try start()
        defer { server.send(SIGKILL) }
        for words in [
            ["status"], ["status", "--json"], ["stages"], ["plan"], ["drain"], ["drain", "--json"], ["events"],
        ] {
            let outcome = try Program.framehost.run(["ctl", url] + words)
            let said = outcome.output + outcome.error
            #expect(!said.isEmpty)
            let obeyed = said.unicodeScalars.filter {
                $0.value < 0x20 && $0 != "\n" || (0x7f...0x9f).contains($0.value) || $0.value == 0x202e
            }
            #expect(obeyed.isEmpty, "\(words): \(said.debugDescription)")
            // A text of a server is never a line of its own.
            #expect(!said.split(separator: "\n").contains { $0.hasPrefix("e: all is well") }, "\(words): \(said)")
            if words.contains("--json") || words == ["plan"] { _ = try JSON(parsing: outcome.output) }
        }
        let top = try Program.framehost.run(["top", url, "--count", "1", "--interval", "0.1"])
        #expect(!(top.output + top.error).contains("\u{1b}"))
    }

    @Test(.needs(.python)) func itsPageIsNoPicture() throws {
        let (server, url) = try start()
        defer { server.send(SIGKILL) }
        let workspace = try Workspace()
        for name in ["now.jpg", "now.png"] {
            let outcome = try Program.framehost.run(
                ["snapshot", url, "camera", name], folder: workspace.folder.path)
            #expect(outcome.status == 1 && !workspace.exists(name))
            let format = name.hasSuffix("png") ? "PNG" : "JPEG"
            #expect(
                outcome.error
                    == "http://\(url): is not a control server: its answer is not a \(format) picture. Check the address and the port.\n",
                "\(outcome.error)")
        }
    }
}
