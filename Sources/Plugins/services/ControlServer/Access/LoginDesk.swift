// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import ServerAccess

/// Knows the token, the users and the sessions of a server, and says who sends a request. [any thread]
final class LoginDesk: Sendable {
    /// What a request shows of its sender.
    enum Shown: Sendable, Equatable {
        case nothing
        /// A token, or what a login has given.
        case bearer(String)
        case basic(name: String, password: String)
        /// A field that says nothing this server can read.
        case unreadable
    }

    private struct State {
        var sessions: SessionBook
        var tries = LoginTries()
    }

    private let token: AccessToken?
    private let tokenRights: Rights
    private let users: UserList?
    private let now: @Sendable () -> Int64
    private let state: Locked<State>

    /// - Parameters:
    ///   - seesOriginals: Whether the token has the right to see originals.
    ///   - now: Nanoseconds of a clock that does not step.
    init(
        token: AccessToken? = nil, seesOriginals: Bool = false, users: UserList? = nil,
        sessions: SessionBook.Limits = .init(), now: @escaping @Sendable () -> Int64 = { MonotonicTime.now() }
    ) {
        (self.token, self.users, self.now) = (token, users, now)
        tokenRights = seesOriginals ? [.watch, .control, .originals] : [.watch, .control]
        state = Locked(State(sessions: SessionBook(sessions)))
    }

    var hasToken: Bool { token != nil }
    var hasUsers: Bool { users != nil }
    /// Whether everybody may watch and control.
    var isOpen: Bool { token == nil && users == nil }

    // MARK: Requests

    /// Who sends a request, or why it is refused.
    ///
    /// - Parameters:
    ///   - counts: Whether a wrong secret counts as a try. It does not if the same request is judged again.
    ///   - mayAsk: Whether the answer may make a browser ask for a name and a password by itself.
    func judge(
        _ shown: Shown, from address: PeerAddress, counts: Bool = true, mayAsk: Bool = false
    ) -> Result<Caller, Refusal> {
        guard !isOpen else { return .success(.everybody) }
        if case .bearer(let secret) = shown, users != nil, let caller = caller(of: secret) { return .success(caller) }
        switch shown {
        case .nothing:
            return .failure(refusal(users == nil ? "the request has no token" : "the request has no login", "", mayAsk))
        case .unreadable:
            return .failure(refusal(users == nil ? "the token is wrong" : "the login cannot be read", wrong, mayAsk))
        case .bearer(let secret):
            // Also during a pause: with at least 16 characters it is not guessed, and whoever shares the address (behind a
            // proxy everybody) could otherwise keep programs out for ever.
            if let token, token.matches(secret) { return .success(Caller(way: .token, rights: tokenRights)) }
            if let pause = pause(of: address) { return .failure(Self.wait(pause)) }
            // It cannot be guessed, and pages of an earlier run still have theirs.
            if users != nil, SessionBook.hasForm(secret) {
                return .failure(refusal("the session has ended", wrong, mayAsk))
            }
            return .failure(fail(nil, secret, address, counts, mayAsk))
        case .basic(let name, let password):
            if let pause = pause(of: address) { return .failure(Self.wait(pause)) }
            if let rights = users?.rights(of: name, password: password) {
                return .success(Caller(way: .password, name: name, rights: rights))
            }
            return .failure(fail(name, password, address, counts, mayAsk))
        }
    }

    private func caller(of secret: String) -> Caller? {
        let now = now()
        guard let session = state.withLock({ $0.sessions.use(secret, now: now) }) else { return nil }
        return Caller(way: .session(session.id), name: session.name, rights: session.rights) { [weak self] in
            guard let self else { return false }
            return isAlive(session.id)
        }
    }

    private func isAlive(_ id: SessionBook.ID) -> Bool {
        let now = now()
        return state.withLock { $0.sessions.isAlive(id, now: now) }
    }

    private func pause(of address: PeerAddress) -> Int? {
        let now = now()
        return state.withLock { $0.tries.pause(of: address, now: now) }
    }

    private func fail(
        _ name: String?, _ secret: String, _ address: PeerAddress, _ counts: Bool, _ mayAsk: Bool
    ) -> Refusal {
        if counts {
            let now = now()
            state.withLock { $0.tries.failed(address, name: name, secret: secret, now: now) }
        }
        let what =
            if name != nil {
                users == nil ? "this server has no users, only a token" : "the name or the password is wrong"
            } else { token == nil ? "this server has no token, only users" : "the token is wrong" }
        return refusal(what, wrong, mayAsk)
    }

    // MARK: Sessions

    /// What a page gets for a name and a password.
    struct Session: Sendable {
        /// What the page sends from now on.
        var secret: String
        var caller: Caller
    }

    /// Begins a session.
    func logIn(_ name: String, password: String, from address: PeerAddress) throws(Refusal) -> Session {
        guard users != nil else {
            throw Refusal(
                409, "unavailable", place: "name", "this server has no users",
                isOpen
                    ? "Everybody who reaches it may watch and control; 'users' of 'control' changes that."
                    : "Send the token of 'control' with each request.")
        }
        switch judge(.basic(name: name, password: password), from: address) {
        case .failure(let refusal): throw refusal
        case .success(let caller):
            let now = now()
            let secret = state.withLock { $0.sessions.begin(name, caller.rights, now: now) }
            return Session(secret: secret, caller: self.caller(of: secret) ?? caller)
        }
    }

    /// Ends the session of a caller; nothing for one without.
    func logOut(_ caller: Caller) {
        if case .session(let id) = caller.way { state.withLock { $0.sessions.end(id) } }
    }

    /// Failed logins that should be reported now.
    func takeNews() -> [LoginTries.News] {
        let now = now()
        return state.withLock { $0.tries.takeNews(now: now) }
    }

    // MARK: Refusals

    private var wrong: String { #", error="invalid_token""# }

    private func refusal(_ what: String, _ error: String, _ mayAsk: Bool) -> Refusal {
        var ways: [String] = []
        var remedies: [String] = []
        if users != nil {
            ways.append("user")
            remedies.append("Log in with a name and a password of 'users' of 'control'.")
        }
        if token != nil {
            ways.append("token")
            remedies.append("Send the field Authorization: Bearer TOKEN with the token of 'control'.")
        }
        var refusal = Refusal(401, "unauthorized", place: "Authorization", what, remedies.joined(separator: " Or: "))
        refusal.logins = ways
        // The page asks itself. For the challenge Basic its browser would ask too.
        let isBasic = users != nil && mayAsk
        refusal.fields = [
            "WWW-Authenticate": isBasic
                ? #"Basic realm="framehost", charset="UTF-8""# : #"Bearer realm="framehost""# + error
        ]
        return refusal
    }

    private static func wait(_ seconds: Int) -> Refusal {
        var refusal = Refusal(
            429, "too-many-tries", place: "Authorization",
            "there were too many wrong logins from this address, so that none is checked for \(seconds) s",
            "Try again then. The right token, sessions that are open and other addresses are not affected.")
        refusal.fields = ["Retry-After": "\(seconds)"]
        return refusal
    }

    /// Why a caller may not do this.
    ///
    /// - Parameters:
    ///   - what: What was asked for: "a command".
    ///   - place: The stage, or what else it is about.
    func lacks(_ right: Rights, _ caller: Caller, place: String, _ what: String) -> Refusal {
        let word = right.words.first ?? "watch"
        let who =
            switch caller.way {
            case .none: "nobody has it on a server without users and token"
            case .token: "the token does not have it"
            case .password, .session: "the user '\(caller.name ?? "")' does not have it"
            }
        let remedy =
            if users == nil, right == .originals {
                token == nil
                    ? "Set 'users' of 'control', and give a user the right: name:watch,originals:password."
                    : "Set \"tokenSeesOriginals\": true in 'control', or give a user of 'users' the right: name:watch,originals:password."
            } else {
                "Log in as a user whose line in 'users' of 'control' has the right '\(word)'."
            }
        return Refusal(403, "forbidden", place: place, "\(what) needs the right '\(word)', and \(who)", remedy)
    }
}
