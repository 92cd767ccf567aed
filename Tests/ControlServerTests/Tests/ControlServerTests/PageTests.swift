// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct PageTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../../../Sources/Plugins/services/ControlServer/Page").standardized

    private let api = ControlAPI.over(FakeRun(), token: "a-token-of-tests-0123456789abcdef")

    @Test func servesEveryFileOfThePageAsItIsWritten() async throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            !$0.hasSuffix(".swift")
        }
        #expect(names.contains("index.html") && names.contains("main.js") && names.contains("page.css"))
        for name in names {
            let asked = await api.ask("GET", name == "index.html" ? "/" : "/\(name)")
            #expect(asked.status == 200, "\(name)")
            #expect(try asked.text == String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8))
        }
    }

    @Test(arguments: [
        ("/", "text/html; charset=utf-8"), ("/?from=elsewhere", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"), ("/main.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ]) func saysTheTypeAndTheRulesOfThePage(path: String, type: String) async {
        let asked = await api.ask("GET", path)
        #expect(asked.field("Content-Type") == type)
        #expect(asked.field("Content-Security-Policy")?.hasPrefix("default-src 'none'; script-src 'self'; ") == true)
    }

    @Test func needsNoTokenWhereTheAPINeedsOne() async {
        #expect(await api.ask("GET", "/").status == 200)
        #expect(await api.ask("GET", "/api/v1/status").status == 401)
    }

    @Test(arguments: [("/", 200), ("/main.js", 403), ("/api/v1/status", 403)])
    func linksOfOtherSitesLeadToThePageAlone(path: String, status: Int) async {
        let asked = await api.ask("GET", path, fields: ["sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"])
        #expect(asked.status == status)
    }

    @Test(arguments: ["/", "/main.js"]) func namesOfOthersAreRefused(path: String) async {
        var head = RequestHead(method: "GET", target: path, host: "evil.example:8080")
        #expect(await api.answer(head).status == 421)
        head.host = "127.0.0.1:8080"
        head.fields = [("origin", "http://evil.example")]
        #expect(await api.answer(head).status == 403)
    }

    @Test(arguments: [
        "/main.jx", "/index.html", "/../Package.swift", "/%2e%2e/Package.swift", "//main.js", "/main.js/",
    ])
    func hasNothingElse(path: String) async {
        let open = ControlAPI.over(FakeRun())
        #expect(await open.ask("GET", path).status == 404)
    }

    /// What `reason.js` asks where the modules were refused: POST has `Origin`, as requests for modules have.
    @Test func saysWhyItsModulesAreRefused() async {
        let open = ControlAPI.over(FakeRun(), hosts: ["cam.example"])
        let asked = await open.ask("POST", "/main.js", fields: ["origin": "https://cam.example"])
        #expect(asked.status == 403)
        #expect(
            asked.what
                == "the page comes from 'https://cam.example', but the server was asked for as '127.0.0.1:8080'; pages of other origins must not use it"
        )
        let right = await open.ask("POST", "/main.js", fields: ["origin": "http://127.0.0.1:8080"])
        #expect(right.status == 405)
    }

    @Test func isReadAndNothingElse() async {
        let asked = await api.ask("DELETE", "/page.css")
        #expect(asked.status == 405)
        #expect(asked.field("Allow") == "GET, HEAD")
    }

    @Test func givesItsFiguresAndTheChainsName() async {
        let open = ControlAPI.over(FakeRun())
        let figures = await open.ask("GET", "/api/v1/metrics").json
        #expect(figures["links"]?.asArray?.first?["capacity"]?.asInt == 4)
        #expect(await open.ask("GET", "/api/v1/status").json["name"]?.asString != nil)
    }
}
