// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameSupport
import ServerAccess
import Testing

@testable import ControlServer
@testable import FrameCore

private let people = """
    # who may do what
    anna:watch,control,originals:anna's secret

      bert:watch,control:bert:secret
    cora:watch:c
    dora:watch,originals:d
    """

private let token = "0123456789abcdef"

private func desk(seesOriginals: Bool = false, hasToken: Bool = true, now: @escaping @Sendable () -> Int64 = { 0 })
    throws -> LoginDesk
{
    LoginDesk(
        token: hasToken ? AccessToken(token) : nil, seesOriginals: seesOriginals, users: try UserList(people), now: now)
}

private func basic(_ name: String, _ password: String) -> [String: String] {
    ["authorization": "Basic " + Data("\(name):\(password)".utf8).base64EncodedString()]
}

private let logins: [(name: String, fields: [String: String], rights: Rights)] = [
    ("anna", basic("anna", "anna's secret"), [.watch, .control, .originals]),
    ("bert", basic("bert", "bert:secret"), [.watch, .control]),
    ("cora", basic("cora", "c"), [.watch]), ("dora", basic("dora", "d"), [.watch, .originals]),
    ("token", ["authorization": "Bearer \(token)"], [.watch, .control]),
]

@Suite struct UserListTests {
    @Test func readsNamesRightsAndPasswords() throws {
        let list = try UserList(people)
        #expect(list.rights(of: "anna", password: "anna's secret") == [.watch, .control, .originals])
        #expect(list.rights(of: "bert", password: "bert:secret") == [.watch, .control])
        #expect(list.rights(of: "cora", password: "c") == .watch)
        #expect(list.rights(of: "cora", password: "") == nil)
        #expect(list.rights(of: "nobody", password: "c") == nil)
        #expect("\(list) \(String(reflecting: list))" == "4 users 4 users")
    }

    @Test(arguments: [
        ("anna", 1), ("anna:secret", 1), ("a:watch:x\nanna:all:secret", 2), ("\n# x\nanna:control:secret", 3),
        ("anna:originals:secret", 1), ("anna::secret", 1), ("anna:watch,:secret", 1), ("anna:watch,watch:secret", 1),
        (":watch:secret", 1), ("anna:watch:", 1), ("a\u{1b}b:watch:secret", 1), ("a:watch:x\na:watch:y", 2),
        (String(repeating: "n", count: 65) + ":watch:secret", 1),
        ((0...256).map { "u\($0):watch:secret" }.joined(separator: "\n"), 257),
    ]) func namesTheLineThatIsWrongAndQuotesNothing(text: String, line: Int) {
        do {
            _ = try UserList(text)
            Issue.record("it is accepted")
        } catch {
            #expect(error.line == line)
            #expect(!error.rule.contains("secret"))
        }
    }

    @Test func readsAFileOrAVariable() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "users-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(people.utf8).write(to: folder.appending(path: "users"))
        try Data("anna:watch:secret\nbert:secret\n".utf8).write(to: folder.appending(path: "wrong"))
        try Data("# nobody\n".utf8).write(to: folder.appending(path: "empty"))
        func said(_ name: String) -> String {
            do { return "\(try UserList.read(name) { "\(folder.path)/\($0)" })" } catch { return "\(error)" }
        }
        #expect(said("users") == "4 users")
        #expect(
            said("wrong")
                == "users: line 2 of the file '\(folder.path)/wrong' must be name:rights:password. Correct that line, for example to anna:watch,control:PASSWORD."
        )
        #expect(
            said("empty")
                == "users: the file '\(folder.path)/empty' must name a user. Add a line name:rights:password, or leave 'users' out."
        )
        setenv("FRAMEHOST_TEST_USERS", "anna:watch:secret", 1)
        defer { unsetenv("FRAMEHOST_TEST_USERS") }
        #expect(said("env:FRAMEHOST_TEST_USERS") == "1 users")
    }
}

/// What each login may ask for, of every route that there is.
@Suite struct RightsTests {
    /// What a route needs, with a request that is complete. A route that is not here fails the test.
    private static let needs: [String: (rights: Rights, body: String?)] = [
        "getHealth": (.watch, nil), "getMetrics": (.watch, nil), "getOpenAPI": (.watch, nil),
        "getLogin": (.watch, nil), "logIn": ([], #"{"name":"cora","password":"c"}"#), "logOut": (.watch, nil),
        "getStatus": (.watch, nil), "getChain": (.watch, nil), "putChain": (.control, #"{"stages":[{"use":"x"}]}"#),
        "getPlan": (.watch, nil), "getFigures": (.watch, nil), "getMetricsJSON": (.watch, nil),
        "getKinds": (.watch, nil), "attachBranch": (.control, #"{"at":"cam","stages":[{"use":"x"}]}"#),
        "drain": (.control, "{}"), "getEvents": (.watch, nil), "getLive": (.watch, nil), "getStages": (.watch, nil),
        "getStage": (.watch, nil), "setOptions": (.control, #"{"text":"x"}"#), "sendCommand": (.control, "{}"),
        "pauseStage": (.control, "{}"), "resumeStage": (.control, "{}"), "replaceStage": (.control, #"{"use":"x"}"#),
        "detachStage": (.control, nil), "getPicture": (.watch, nil), "getPictures": (.watch, nil),
    ]

    private static func path(_ route: Route) -> String {
        route.path.replacingOccurrences(of: "{id}", with: "cam").replacingOccurrences(of: "{name}", with: "shine")
    }

    /// As the page asks for the WebSocket.
    private static func fields(_ route: Route, _ fields: [String: String]) -> [String: String] {
        route.path == LiveProtocol.path ? fields.merging(["origin": "http://127.0.0.1:8080"]) { $1 } : fields
    }

    @Test func everyRouteHasItsRight() async throws {
        let run = FakeRun()
        let api = ControlAPI.over(run, desk: try desk())
        let pictures = Thread { api.pictures.run() }
        pictures.start()
        defer { api.pictures.close() }
        for route in api.routes {
            let (rights, body) = try #require(Self.needs[route.name], "say in this test what \(route.name) needs")
            #expect(route.rights == rights, "\(route.name)")
            let method = route.method.rawValue.uppercased()
            let stranger = await api.ask(method, Self.path(route), body: body, fields: Self.fields(route, [:]))
            #expect(stranger.status == (rights.isEmpty ? 200 : 401), "\(route.name) without a login")
            for login in logins {
                let before = run.commands.count
                let asked = await api.ask(
                    method, Self.path(route), body: body, fields: Self.fields(route, login.fields))
                let may = login.rights.isSuperset(of: rights)
                #expect((asked.status == 403) == !may, "\(route.name) by \(login.name): \(asked.status) \(asked.text)")
                if !may {
                    #expect(asked.json["error"]?["code"]?.asString == "forbidden")
                    #expect(run.commands.count == before, "\(route.name) by \(login.name) was carried out")
                }
            }
        }
    }

    @Test func everybodyWatchesAndControlsWithoutUsersAndToken() async throws {
        let run = FakeRun()
        run.state.withLock { $0.originals = ["cam"] }
        let api = ControlAPI.over(run)
        #expect(await api.ask("POST", "/api/v1/drain", body: "{}").status == 200)
        let login = await api.ask("GET", "/api/v1/login")
        #expect(login.json.withoutPlaces.text() == #"{"by":"nobody","name":null,"rights":["watch","control"]}"#)
        let picture = await api.ask("GET", "/api/v1/stages/cam/picture")
        #expect(picture.status == 403)
        #expect(picture.json["error"]?["code"]?.asString == "forbidden")
        #expect(picture.json["error"]?["place"]?.asString == "cam")
        #expect(
            picture.what
                == "this stage shows what a stage with privacy behind it covers, so that looking at it needs the right 'originals', and nobody has it on a server without users and token"
        )
        #expect(
            picture.remedy
                == "Set 'users' of 'control', and give a user the right: name:watch,originals:password.")
        #expect(run.state.withLock { $0.asked } == 0, "it was asked for a picture all the same")
    }

    @Test func picturesOfABareStageNeedTheRight() async throws {
        let run = FakeRun()
        run.state.withLock { $0.originals = ["cam"] }
        for seesOriginals in [false, true] {
            let api = ControlAPI.over(run, desk: try desk(seesOriginals: seesOriginals))
            let thread = Thread { api.pictures.run() }
            thread.start()
            defer { api.pictures.close() }
            for login in logins {
                let may = login.rights.contains(.originals) || login.name == "token" && seesOriginals
                for address in ["picture", "picture?preview=true&width=64", "picture?format=png", "pictures?count=1"] {
                    let asked = await api.ask("GET", "/api/v1/stages/cam/\(address)", fields: login.fields)
                    #expect((asked.status == 403) == !may, "\(address) by \(login.name): \(asked.status)")
                }
                let head = await api.ask("HEAD", "/api/v1/stages/cam/picture", fields: login.fields)
                #expect((head.status == 403) == !may)
            }
        }
        let stages = await ControlAPI.over(run).ask("GET", "/api/v1/stages").json.asArray ?? []
        #expect(stages.map { $0["showsOriginals"]?.asBool } == [true, false])
    }

    @Test func commandsThatShowOriginalsNeedTheRight() async throws {
        let run = FakeRun()
        run.state.withLock { $0.originalCommands = ["attach", "set", "shine"] }
        let api = ControlAPI.over(run, desk: try desk())
        let asks = [
            ("POST", "/api/v1/branches", #"{"at":"cam","stages":[{"use":"x"}]}"#),
            ("PATCH", "/api/v1/stages/text/options", #"{"text":"x"}"#),
            ("POST", "/api/v1/stages/text/commands/shine", "{}"),
        ]
        for (method, path, body) in asks {
            for login in logins {
                let asked = await api.ask(method, path, body: body, fields: login.fields)
                #expect(
                    asked.status == (login.rights.isSuperset(of: [.control, .originals]) ? 200 : 403), "\(login.name)")
            }
        }
        #expect(run.commands.count == asks.count)
        #expect(await api.ask("POST", "/api/v1/drain", body: "{}", fields: logins[1].fields).status == 200)
    }

    /// The stage becomes bare after it was asked for its picture.
    @Test func aPictureIsNotGivenWhereTheStageIsBareByThen() async throws {
        let run = FakeRun()
        run.state.withLock { $0.givers = [] }
        let api = ControlAPI.over(run, desk: try desk())
        let thread = Thread { api.pictures.run() }
        thread.start()
        defer { api.pictures.close() }
        async let asked = api.ask("GET", "/api/v1/stages/cam/picture", fields: logins[2].fields)
        while run.state.withLock({ $0.inboxes["cam"] == nil }) { usleep(1000) }
        run.state.withLock { $0.originals = ["cam"] }
        try run.givePicture(of: "cam")
        // Where the test was held up for a second, none came in time.
        #expect([403, 204].contains(await asked.status))
        #expect(run.state.withLock { $0.encoded.isEmpty })
    }
}

@Suite struct LoginTests {
    private final class Clock: Sendable {
        private let time = Locked<Int64>(1)
        var now: Int64 { time.withLock { $0 } }
        func advance(seconds: Double) { time.withLock { $0 += Int64(seconds * 1e9) } }
    }

    private func logIn(_ api: ControlAPI, _ name: String, _ password: String) async -> Asked {
        await api.ask("POST", "/api/v1/login", body: #"{"name":"\#(name)","password":"\#(password)"}"#)
    }

    @Test func aSessionIsUsedLikeAToken() async throws {
        let clock = Clock()
        let api = ControlAPI.over(FakeRun(), desk: try desk { clock.now })
        let answer = await logIn(api, "bert", "bert:secret")
        #expect(answer.status == 200)
        let session = try #require(answer.json["session"]?.asString)
        #expect(SessionBook.hasForm(session))
        #expect(answer.json["rights"]?.withoutPlaces.text() == #"["watch","control"]"#)
        let fields = ["authorization": "Bearer \(session)"]
        let login = await api.ask("GET", "/api/v1/login", fields: fields)
        #expect(login.json.withoutPlaces.text() == #"{"by":"user","name":"bert","rights":["watch","control"]}"#)
        let hex = session.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        var socket = RequestHead(method: "GET", target: LiveProtocol.path, host: "127.0.0.1:8080")
        socket.fields = [
            ("origin", "http://127.0.0.1:8080"), ("sec-websocket-protocol", "framehost.v1, framehost.token.\(hex)"),
        ]
        let verdict = api.judge(socket)
        #expect((try? verdict.get())?.name == "bert")
        #expect(await api.ask("DELETE", "/api/v1/login", fields: fields).status == 204)
        #expect(await api.ask("GET", "/api/v1/login", fields: fields).status == 401)
        #expect((try? verdict.get())?.isAlive() == false)
    }

    @Test func aSessionEndsIdleAndAtTheEndOfItsLife() throws {
        var book = SessionBook(SessionBook.Limits(perUser: 2, idle: 10, life: 25))
        let first = book.begin("anna", .watch, now: 0)
        #expect(book.use(first, now: 9)?.name == "anna")
        #expect(book.use(first, now: 18) != nil)
        #expect(book.use(first, now: 24) != nil)
        #expect(book.use(first, now: 25) == nil, "its life is over")
        let idle = book.begin("anna", .watch, now: 100)
        #expect(book.use(idle, now: 110) == nil)
        // Of three the one that was used least recently goes; others' stay.
        let other = book.begin("bert", .watch, now: 200)
        let (a, b) = (book.begin("anna", .watch, now: 200), book.begin("anna", .watch, now: 201))
        #expect(book.use(a, now: 202) != nil)
        let c = book.begin("anna", .watch, now: 203)
        #expect(book.use(b, now: 204) == nil)
        #expect([a, c, other].allSatisfy { book.use($0, now: 204) != nil })
        #expect(book.count == 3)
        #expect(book.use(SessionBook.prefix + String(repeating: "0", count: 64), now: 204) == nil)
        #expect(Set((0..<100).map { _ in book.begin("x", .watch, now: 300) }).count == 100)
    }

    @Test func asksForANameAndAPassword() async throws {
        let api = ControlAPI.over(FakeRun(), desk: try desk())
        let wrong = await logIn(api, "bert", "wrong")
        #expect(wrong.status == 401)
        #expect(wrong.what == "the name or the password is wrong")
        #expect(await logIn(api, "nobody", "wrong").what == wrong.what)
        #expect(!wrong.text.contains("bert"))
        #expect(wrong.json["error"]?["logins"]?.withoutPlaces.text() == #"["user","token"]"#)
        #expect(await api.ask("POST", "/api/v1/login", body: #"{"name":"bert"}"#).status == 400)
        #expect(await api.ask("POST", "/api/v1/login", body: #"{"name":1,"password":"x"}"#).status == 400)
        #expect(
            await api.ask("POST", "/api/v1/login", body: "{}", fields: ["content-type": "text/plain"]).status == 415)
        #expect(
            await api.ask("POST", "/api/v1/login", body: "{}", fields: ["origin": "http://evil.example"]).status == 403)
        let plain = ControlAPI.over(FakeRun(), token: token)
        #expect(await logIn(plain, "bert", "x").status == 409)
    }

    /// A browser would ask by a window of its own, and send the answer by itself from then on.
    @Test func onlyProgramsAreAskedForBasic() async throws {
        let api = ControlAPI.over(FakeRun(), desk: try desk())
        func challenge(_ fields: [String: String]) async -> String {
            await api.ask("GET", "/api/v1/status", fields: fields).field("WWW-Authenticate") ?? ""
        }
        #expect(await challenge([:]).hasPrefix("Basic "))
        #expect(await challenge(["sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"]).hasPrefix("Bearer "))
        #expect(await challenge(["origin": "http://127.0.0.1:8080"]).hasPrefix("Bearer "))
        let tokenAlone = await ControlAPI.over(FakeRun(), token: token).ask("GET", "/api/v1/status")
        #expect(tokenAlone.field("WWW-Authenticate") == #"Bearer realm="framehost""#)
    }

    @Test(arguments: ["Basic", "Basic !!!", "Basic YW5uYQ==", "Basic YW5uYTp4", "Digest x", "Basic YQ", "Basic /w=="])
    func refusesWhatIsNoLogin(field: String) async throws {
        let api = ControlAPI.over(FakeRun(), desk: try desk())
        #expect(await api.ask("GET", "/api/v1/status", fields: ["authorization": field]).status == 401)
    }

    @Test func wrongTriesOfAnAddressMustWait() throws {
        let clock = Clock()
        let desk = try desk { clock.now }
        let (bad, good) = (PeerAddress(v4: 1), PeerAddress(v4: 2))
        func status(_ password: String, _ address: PeerAddress, _ name: String = "bert") -> Int {
            switch desk.judge(.basic(name: name, password: password), from: address) {
            case .success: 200
            case .failure(let refusal): refusal.status
            }
        }
        for number in 1...5 { #expect(status("guess \(number)", bad) == 401) }
        #expect(status("guess 6", bad) == 429)
        #expect(status("bert:secret", bad) == 429, "a right guess would show")
        #expect(status("bert:secret", good) == 200, "another address waits for it")
        var pauses: [Double] = []
        for number in 6...14 {
            var waited = 0.0
            while status("guess \(number)", bad) == 429 {
                clock.advance(seconds: 0.5)
                waited += 0.5
            }
            pauses.append(waited)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        clock.advance(seconds: 60)
        #expect(status("bert:secret", bad) == 200, "the owner is never locked out for ever")
        // Forgotten after a while.
        clock.advance(seconds: 700)
        for number in 20...24 { #expect(status("guess \(number)", bad) == 401) }
        // A token counts as well, and so does a name that there is not.
        for number in 1...5 {
            _ = desk.judge(.bearer("guess-of-a-token-\(number)"), from: PeerAddress(v4: 3))
            #expect(status("x\(number)", PeerAddress(v4: 4), "name\(number)") == 401)
        }
        #expect(status("x", PeerAddress(v4: 3)) == 429)
        #expect(status("x", PeerAddress(v4: 4)) == 429)
    }

    @Test func whatAProgramRepeatsAndSessionsOfAnEarlierRunLockNobodyOut() throws {
        let clock = Clock()
        let desk = try desk { clock.now }
        let address = PeerAddress(v4: 1)
        let session = try desk.logIn("cora", password: "c", from: address).secret
        let old = SessionBook.prefix + String(repeating: "ab", count: 32)
        for _ in 0..<50 {
            _ = desk.judge(.bearer("the-same-wrong-token"), from: address)
            _ = desk.judge(.bearer(old), from: address)
        }
        #expect((try? desk.judge(.bearer(token), from: address).get()) != nil)
        for number in 0..<50 { _ = desk.judge(.bearer("guess-\(number)"), from: address) }
        #expect((try? desk.judge(.basic(name: "cora", password: "c"), from: address).get()) == nil)
        #expect((try? desk.judge(.bearer(token), from: address).get()) != nil, "programs of that address go on")
        #expect((try? desk.judge(.bearer(session), from: address).get())?.name == "cora", "an open session goes on")
    }

    /// Many addresses together have one try each, and the owner has one at once.
    @Test func manyAddressesGainLittle() {
        var tries = LoginTries()
        for address in 1...20 as ClosedRange<UInt32> {
            tries.failed(PeerAddress(v4: address), name: "anna", secret: "guess \(address)", now: 0)
            #expect(tries.pause(of: PeerAddress(v4: address), now: 0) == nil)
        }
        for address in 21...2500 as ClosedRange<UInt32> {
            tries.failed(PeerAddress(v4: address), name: "anna", secret: "guess \(address)", now: 0)
            tries.failed(PeerAddress(v4: address), name: "name \(address)", secret: "x", now: 0)
            #expect(tries.pause(of: PeerAddress(v4: address), now: 0) == 1)
        }
        #expect(tries.pause(of: PeerAddress(v4: 9999), now: 0) == nil)
        #expect(tries.count == (LoginTries.mostAddresses, LoginTries.mostNames))
    }

    @Test func failuresAreReportedNowAndThenWithoutSecrets() {
        var tries = LoginTries()
        let name = "an\u{1b}na" + String(repeating: "x", count: 100)
        for number in 0..<3 { tries.failed(PeerAddress(v4: 0xc000_0207), name: name, secret: "\(number)", now: 0) }
        let news = tries.takeNews(now: 0)
        #expect(news.map(\.address.text) == ["192.0.2.7"])
        #expect(news.first?.count == 3)
        #expect(news.first?.name == "an\u{fffd}na" + String(repeating: "x", count: 59))
        for address in 0..<50 as Range<UInt32> {
            tries.failed(PeerAddress(v4: address), name: nil, secret: "x", now: 1)
        }
        #expect(tries.takeNews(now: 9_999_999_999).isEmpty)
        #expect(tries.takeNews(now: 10_000_000_000).count == LoginTries.mostNews)
        #expect(
            PeerAddress(v6: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1] + [UInt8](repeating: 9, count: 8)).text
                == "2001:db8:0:1::/64")
    }
}
