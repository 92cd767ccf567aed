// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Says why a client may not have what a stage gives at this moment; nil if it may.
///
/// It is asked anew with each picture and each access unit, since a change may make a stage bare that somebody watches.
typealias Permit = @Sendable (_ stage: String, _ isOriginal: Bool) -> Refusal?

/// Who asks, and what that client may do.
extension ControlAPI {
    static let loginPath = "/api/v1/login"

    /// Who sends a request, or why it is refused.
    func judge(_ head: RequestHead, from address: PeerAddress = .local) -> Result<Caller, Refusal> {
        gate.judge(head, room: room(of: head), from: address)
    }

    private func room(of head: RequestHead) -> Gate.Room {
        let path = head.target.prefix { $0 != "?" }
        if let name = Self.pageFile(of: head) { return name.isEmpty ? .page : .pageFile }
        if path == Self.loginPath, head.method == "POST" { return .login }
        return head.target == LiveProtocol.path ? .socket : .api
    }

    /// The permit of a client.
    func permit(_ caller: Caller) -> Permit {
        let desk = gate.desk
        return { stage, isOriginal in
            guard caller.isAlive() else {
                return Refusal(
                    401, "unauthorized", place: stage, "the session has ended", "Log in again.")
            }
            guard isOriginal, !caller.rights.contains(.originals) else { return nil }
            return desk.lacks(
                .originals, caller, place: stage,
                "this stage shows what a stage with privacy behind it covers, so that looking at it")
        }
    }

    var ofLogins: [Route] {
        [
            Route(
                method: .get, path: Self.loginPath, name: "getLogin", rights: .watch,
                summary: "Who the client is, and what it may do.",
                answers: ["200": OpenAPI.json("The client's name and rights.", "Login")]
            ) { call in .json(.object(Self.json(of: call.caller))) },
            Route(
                method: .post, path: Self.loginPath, name: "logIn", rights: [],
                summary: "Begins a session of a user of 'users'.", body: .required(OpenAPI.credentials),
                answers: ["200": OpenAPI.json("The session, and the client's name and rights.", "Session")]
            ) { call in try logIn(call) },
            Route(
                method: .delete, path: Self.loginPath, name: "logOut", rights: .watch,
                summary: "Ends the session that sends it.",
                answers: ["204": ["description": "The session has ended. Without a session there was none to end."]]
            ) { call in
                gate.desk.logOut(call.caller)
                return Answer(204)
            },
        ]
    }

    private func logIn(_ call: Call) throws -> Answer {
        let members = call.body?.asObject ?? []
        try Self.refuse(unknownIn: members.map(\.key), known: ["name", "password"])
        func text(_ key: String) throws -> String {
            guard let text = call.body?[key]?.asString, text.utf8.count <= 4096 else {
                throw Refusal(
                    400, "invalid-configuration", place: key, "'\(key)' must be a string of at most 4096 bytes",
                    "Send {\"name\": \"…\", \"password\": \"…\"}.")
            }
            return text
        }
        let session = try gate.desk.logIn(text("name"), password: text("password"), from: call.address)
        return .json(.object([("session", .string(session.secret))] + Self.json(of: session.caller)))
    }

    private static func json(of caller: Caller) -> [(key: String, value: JSONNode)] {
        let by =
            switch caller.way {
            case .none: "nobody"
            case .token: "token"
            case .password, .session: "user"
            }
        return [
            ("by", .string(by)), ("name", caller.name.map { .string($0) } ?? .null),
            ("rights", .array(caller.rights.words.map { .string($0) })),
        ]
    }
}
