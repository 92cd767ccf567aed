// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct ControlAPITests {
    private let run = FakeRun()
    private var api: ControlAPI { .over(run) }

    // MARK: Reading

    @Test func healthTellsTheTruth() async {
        let well = await api.ask("GET", "/healthz")
        #expect(well.status == 200)
        #expect(well.text == #"{"healthy":true,"state":"streaming","problems":[]}"# + "\n")
        run.state.withLock { $0.status.problems = ["The link cam → text has been full for 12 s."] }
        let ill = await api.ask("GET", "/healthz")
        #expect(ill.status == 503)
        #expect(ill.json["problems"]?.asArray?.first?.asString == "The link cam → text has been full for 12 s.")
    }

    /// Counters of two looks give rates, whoever asked for the first look.
    /// Requests share looks, but nobody hears that a chain is stopped which has begun meanwhile.
    @Test func sharesNoLookOfAnotherState() async throws {
        let api = api
        for state in [ChainStatus.State.stopped, .streaming, .draining] {
            run.state.withLock { $0.status.state = state }
            let rates = await api.ask("GET", "/api/v1/metrics").json["rates"]
            #expect(rates?["state"]?.asString == state.rawValue)
        }
    }

    @Test func computesRatesForAllWhoWatch() async throws {
        let api = api
        func metrics(given: Int, dropped: Int, camera: Int = 0) -> JSONNode {
            FakeRun.node(
                """
                {"stages":[
                  {"id":"cam","number":\(camera),"use":"test-source","kind":"source","framesIn":0,"framesOut":\(given),"dropped":{}},
                  {"id":"text","use":"text","kind":"filter","framesIn":\(given),"framesOut":9,"dropped":{"queueFull":\(dropped)}}],
                 "links":[{"from":"cam","to":"text","depth":1,"capacity":4,"offered":\(given),"dropped":{"evicted":1}}],
                 "pools":[]}
                """)
        }
        run.state.withLock { $0.metrics = metrics(given: 10, dropped: 1) }
        let first = await api.ask("GET", "/api/v1/metrics").json
        #expect(first["stages"]?.asArray?.first?["framesOut"]?.asInt == 10)
        #expect(first["process"]?["uptimeSeconds"]?.asDouble != nil)
        #expect(first["rates"]?["name"]?.asString == "demo")
        func camera(_ metrics: JSONNode) -> JSONNode? { metrics["rates"]?["stages"]?.asArray?.first }
        #expect(camera(first)?["rate"]?.value == .null)
        run.state.withLock { $0.metrics = metrics(given: 40, dropped: 3) }
        try await Task.sleep(for: .milliseconds(200))
        let second = await api.ask("GET", "/api/v1/metrics").json
        let rate = try #require(camera(second)?["rate"]?.asDouble)
        #expect(rate > 0 && rate <= 30 / 0.2, "\(rate)")
        let text = second["rates"]?["stages"]?.asArray?.last
        #expect(text?["lost"]?.asInt == 2 && text?["lostInAll"]?.asInt == 4)
        #expect(text?["notes"]?.asArray?.first?["word"]?.asString == "lost 2")
        // Over an interval of its own, the first look has no rates, however many intervals were asked for.
        for interval in 60..<80 {
            let asked = await api.ask("GET", "/api/v1/metrics?interval=\(interval)").json
            #expect(camera(asked)?["rate"]?.value == .null)
        }
        let far = await api.ask("GET", "/api/v1/metrics?interval=79").json
        let near = await api.ask("GET", "/api/v1/metrics").json
        #expect(camera(near)?["rate"]?.asDouble != nil && camera(far)?["lost"]?.asInt == 0)
        #expect(await api.ask("GET", "/api/v1/metrics?interval=0").status == 400)
        // Another stage under the same id, which has given more by now: no rate mixes the two.
        run.state.withLock { $0.metrics = metrics(given: 9000, dropped: 3, camera: 5) }
        try await Task.sleep(for: .milliseconds(100))
        let other = await api.ask("GET", "/api/v1/metrics").json
        #expect(camera(other)?["rate"]?.value == .null)
        run.state.withLock { $0.metrics = metrics(given: 9010, dropped: 3, camera: 5) }
        try await Task.sleep(for: .milliseconds(100))
        let later = try #require(camera(await api.ask("GET", "/api/v1/metrics").json)?["rate"]?.asDouble)
        #expect(later > 0 && later <= 10 / 0.1, "\(later)")
    }

    @Test(arguments: [
        "/api/v1/metrics", "/api/v1/status", "/api/v1/chain", "/api/v1/plan", "/api/v1/figures", "/api/v1/kinds",
        "/api/v1/stages",
        "/api/v1/stages/cam", "/openapi.json",
    ]) func showsWhatRuns(path: String) async {
        let asked = await api.ask("GET", path)
        #expect(asked.status == 200)
        #expect(asked.field("Content-Type") == "application/json")
        #expect(asked.json != .null)
    }

    @Test func aStageShowsItsStateItsFileAndItsFigures() async {
        let stage = await api.ask("GET", "/api/v1/stages/cam").json
        #expect(stage["state"]?.asString == "streaming")
        #expect(stage["chain"]?["use"]?.asString == "test-source")
        #expect(stage["figures"]?["framesOut"]?.asInt == 7)
    }

    @Test(arguments: [
        ("/api/v1/stages/cax", "Did you mean 'cam'?"),
        ("/api/v1/stages/nothing-alike", "Name a stage of the chain: 'cam' or 'text'."),
        ("/api/v1/stages/..%2F..%2Fetc%2Fpasswd", "Name a stage of the chain: 'cam' or 'text'."),
    ]) func namesTheStagesThereAre(path: String, remedy: String) async {
        let asked = await api.ask("GET", path)
        #expect(asked.status == 404)
        #expect(asked.what == "no such stage")
        #expect(asked.remedy == remedy)
    }

    @Test(arguments: ["/nothing", "/api/v1/", "/api/v1/stages/", "/api/v1/stages/cam/", "/../healthz", "//healthz"])
    func thereIsNothingElsewhere(path: String) async { #expect(await api.ask("GET", path).status == 404) }

    @Test(arguments: [
        ("POST", "/healthz", "GET, HEAD"), ("TRACE", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/api/v1/chain", "GET, HEAD, PUT"),
        ("PATCH", "/api/v1/stages/cam", "GET, HEAD, PUT, DELETE"), ("GET", "/api/v1/drain", "POST"),
        ("HEAD", "/api/v1/drain", "POST"), ("XYZZY", "/metrics", "GET, HEAD"),
    ]) func namesTheMethodsOfAnAddress(method: String, path: String, allow: String) async {
        let asked = await api.ask(method, path)
        #expect(asked.status == 405)
        #expect(asked.field("Allow") == allow)
    }

    // MARK: Commands

    @Test(arguments: [
        ("PATCH", "/api/v1/stages/text/options", #"{"text":"hi"}"#, #"{"stage":"text","set":{"text":"hi"}}"#),
        (
            "POST", "/api/v1/stages/rec/commands/start", #"{"path":"a.mp4"}"#,
            #"{"stage":"rec","command":"start","arguments":{"path":"a.mp4"}}"#
        ),
        ("POST", "/api/v1/stages/rec/commands/stop", nil, #"{"stage":"rec","command":"stop","arguments":{}}"#),
        ("POST", "/api/v1/stages/cam/pause", nil, #"{"stage":"cam","command":"pause"}"#),
        ("POST", "/api/v1/stages/cam/pause", #"{"drop":true}"#, #"{"stage":"cam","command":"pause","drop":true}"#),
        ("POST", "/api/v1/stages/cam/resume", "{}", #"{"stage":"cam","command":"resume"}"#),
        (
            "PUT", "/api/v1/stages/cam", #"{"use":"test-source"}"#,
            #"{"stage":"cam","command":"replace","with":{"use":"test-source"},"drop":false}"#
        ),
        (
            "PUT", "/api/v1/stages/cam?drop=true", #"{"use":"test-source"}"#,
            #"{"stage":"cam","command":"replace","with":{"use":"test-source"},"drop":true}"#
        ),
        ("DELETE", "/api/v1/stages/a%20b", nil, #"{"stage":"a b","command":"detach"}"#),
        (
            "POST", "/api/v1/branches", #"{"at":"cam","stages":[{"use":"null-sink"}],"copy":true}"#,
            #"{"command":"attach","at":"cam","stages":[{"use":"null-sink"}],"copy":true}"#
        ),
        ("POST", "/api/v1/drain", nil, #"{"command":"drain"}"#),
    ]) func becomesACommand(method: String, path: String, body: String?, command: String) async {
        let asked = await api.ask(method, path, body: body)
        #expect(asked.status == 200)
        #expect(asked.json["frame"]?.asInt == 42)
        #expect(run.commands == [command])
    }

    @Test func aNewChainIsAReload() async {
        #expect(await api.ask("PUT", "/api/v1/chain", body: #"{"stages":[{"use":"test-source"}]}"#).status == 200)
        #expect(
            run.commands == [
                #"{"command":"reload","chain":{"stages":[{"use":"test-source"}]}}"#
            ])
    }

    @Test(
        arguments: [
            (FrameHostError.Code.invalidConfiguration, nil, 400), (.unavailable, nil, 409), (.unusablePlugin, nil, 422),
            (.invalidMedia, nil, 422), (.exhausted, nil, 503), (.stopped, nil, 503), (.callFailed, nil, 500),
            (.broken, nil, 500), (.invalidConfiguration, .noSuchStage, 404),
            (.invalidConfiguration, .noSuchCommand, 404),
            (.invalidConfiguration, .noSuchKey, 400),
        ] as [(FrameHostError.Code, FrameHostError.Reason?, Int)])
    func aFaultHasAStatus(code: FrameHostError.Code, reason: FrameHostError.Reason?, status: Int) async {
        run.state.withLock {
            $0.answer = { _ in
                CommandAnswer(
                    stage: "text",
                    error: FrameHostError(
                        code, place: "text", what: "x", remedy: "Do that.", reason: reason, option: "x"))
            }
        }
        let asked = await api.ask("POST", "/api/v1/stages/text/commands/x")
        #expect(asked.status == status)
        #expect(asked.what == "x")
        #expect(asked.remedy == "Do that.")
        #expect(asked.json["error"]?["reason"]?.asString == reason?.rawValue)
        #expect(asked.json["error"]?["option"]?.asString == "x")
        #expect(asked.json["error"]?["code"]?.asString == code.rawValue)
    }

    @Test func severalFaultsAreAllTold() async {
        run.state.withLock {
            $0.answer = { _ in
                CommandAnswer(
                    stage: nil,
                    error: FrameHostErrors([
                        FrameHostError(.invalidConfiguration, place: "stages[0].rate", what: "one"),
                        FrameHostError(.invalidConfiguration, place: "stages[1].size", what: "two"),
                    ]))
            }
        }
        let asked = await api.ask("PUT", "/api/v1/chain", body: #"{"stages":[{"use":"x"}]}"#)
        #expect(asked.status == 400)
        #expect(asked.json["faults"]?.asArray?.count == 2)
    }

    @Test(arguments: [
        ("PUT", "/api/v1/chain", nil, "this request needs a body"),
        ("PATCH", "/api/v1/stages/text/options", "[1]", "the body must be an object, but is a list"),
        ("POST", "/api/v1/stages/text/pause", #"{"dorp":true}"#, "no such member"),
        ("POST", "/api/v1/drain", #"{"now":true}"#, "no such member"),
        ("POST", "/api/v1/branches", #"{"at":"cam","command":"drain","stages":[]}"#, "no such member"),
        ("GET", "/api/v1/stages/cam/picture?witdh=3", nil, "no such parameter"),
        ("GET", "/api/v1/stages/cam/picture?width=3&width=4", nil, "the parameter is given twice"),
        ("GET", "/api/v1/stages/cam/picture?width=0", nil, "'0' must be a whole number from 1 to 16384"),
        (
            "GET", "/api/v1/stages/cam/picture?width=99999999999999999999", nil,
            "'99999999999999999999' must be a whole number from 1 to 16384"
        ),
        ("GET", "/api/v1/stages/cam/picture?rotate=45", nil, "'45' must be 0, 90, 180 or 270"),
        ("GET", "/api/v1/stages/cam/picture?rotate=090", nil, "'090' must be 0, 90, 180 or 270"),
        ("GET", "/api/v1/stages/cam/picture?fit=all", nil, "'all' must be fill or contain"),
        ("GET", "/api/v1/stages/cam/picture?format=gif", nil, "'gif' must be jpeg or png"),
        ("GET", "/api/v1/stages/cam/pictures?rate=nan", nil, "'nan' must be a number from 0.1 to 60.0"),
        ("GET", "/api/v1/stages/cam/pictures?rate=1e999", nil, "'1e999' must be a number from 0.1 to 60.0"),
        ("GET", "/api/v1/stages/cam/picture?mirror=yes", nil, "'yes' must be true or false"),
        (
            "GET", "/healthz?x=%FF", nil,
            "the address must be a path in UTF-8 of at most 8192 bytes, without control characters"
        ),
        ("POST", "/api/v1/stages/text/commands/x", "{", ""), ("POST", "/api/v1/stages/text/commands/x", "nul", ""),
    ]) func badInputIsAFaultOfTheAsker(method: String, path: String, body: String?, what: String) async {
        let asked = await api.ask(method, path, body: body)
        #expect(asked.status == 400)
        if !what.isEmpty { #expect(asked.what == what) }
        #expect(!asked.what.isEmpty && !asked.remedy.isEmpty, "\(asked.text)")
        #expect(run.commands == [])
    }

    @Test func aStagesOwnCommandIsNotOneOfTheChain() async {
        for name in ["pause", "resume", "detach", "replace", "snapshot"] {
            #expect(await api.ask("POST", "/api/v1/stages/text/commands/\(name)").status == 404)
        }
        #expect(run.commands == [])
    }

    @Test func aLongBodyIsRefusedBeforeItIsRead() async {
        var head = RequestHead(method: "PUT", target: "/api/v1/chain", host: "127.0.0.1:8080")
        head.fields = [("content-type", "application/json"), ("content-length", "1048577")]
        let asked = Asked(
            await api.answer(head) { _ in
                Issue.record("the body was read")
                return []
            })
        #expect(asked.status == 413)
    }

    @Test func theGateStandsBeforeEverything() async {
        let api = ControlAPI.over(run, token: "0123456789abcdef")
        for path in ["/healthz", "/metrics", "/openapi.json", "/nothing", "/api/v1/stages/x/picture"] {
            let asked = await api.ask("GET", path)
            #expect(asked.status == 401)
            #expect(asked.field("WWW-Authenticate")?.hasPrefix("Bearer") == true)
        }
        #expect(await api.ask("GET", "/healthz", fields: ["authorization": "Bearer 0123456789abcdef"]).status == 200)
    }

    // MARK: The document

    @Test func theDocumentDescribesEveryRoute() async throws {
        let document = await api.ask("GET", "/openapi.json").json
        let paths = try #require(document["paths"])
        for route in api.routes {
            let operation = try #require(paths[route.path]?[route.method.rawValue], "\(route.path)")
            #expect(operation["responses"]?["default"] != nil)
            #expect(operation["responses"]?["405"]?["headers"]?["Allow"] != nil)
        }
        // Every reference leads somewhere.
        let schemas = try #require(document["components"]?["schemas"])
        for part in document.text().split(separator: "#/components/schemas/").dropFirst() {
            let name = String(part.prefix { $0 != "\"" })
            #expect(schemas[name] != nil, "\(name)")
        }
        #expect(document["security"] == nil)
        let guarded = ControlAPI.over(run, token: "0123456789abcdef")
        let other = await guarded.ask(
            "GET", "/openapi.json", fields: ["authorization": "Bearer 0123456789abcdef"])
        #expect(other.json["components"]?["securitySchemes"]?["token"]?["scheme"]?.asString == "bearer")
    }
}
