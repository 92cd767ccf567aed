// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The logins of pages: each has a secret of 256 random bits, which the page sends like a token. A value without clock;
/// times are nanoseconds. Nothing of it outlives the process.
struct SessionBook: Sendable {
    struct Limits: Sendable {
        /// Of one user. The one that was not used for the longest time makes room.
        var perUser = 16
        /// Without a request.
        var idle: Int64 = 3_600_000_000_000
        var life: Int64 = 7 * 86_400_000_000_000
    }

    typealias ID = UInt64

    struct Session: Sendable {
        let id: ID
        let name: String
        let rights: Rights
        fileprivate let secret: [UInt8]
        fileprivate let begun: Int64
        fileprivate var used: Int64
    }

    /// What a secret begins with, so that one of an earlier process is told from a wrong token.
    static let prefix = "session-"
    private static let digits = 64

    let limits: Limits
    private var sessions: [ID: Session] = [:]
    private var next: ID = 1

    init(_ limits: Limits = Limits()) { self.limits = limits }

    var count: Int { sessions.count }

    /// Whether a text has the form of a secret.
    static func hasForm(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count == prefix.utf8.count + digits
            && text.utf8.dropFirst(prefix.utf8.count).allSatisfy {
                (48...57).contains($0) || (97...102).contains($0)
            }
    }

    /// Begins a session.
    ///
    /// - Returns: The secret.
    mutating func begin(_ name: String, _ rights: Rights, now: Int64) -> String {
        expire(now)
        let own = sessions.values.filter { $0.name == name }
        if own.count >= limits.perUser, let oldest = own.min(by: { ($0.used, $0.id) < ($1.used, $1.id) }) {
            sessions[oldest.id] = nil
        }
        var random = SystemRandomNumberGenerator()
        let secret =
            Self.prefix
            + (0..<Self.digits / 16).map { _ in
                let digits = String(random.next() as UInt64, radix: 16)
                return String(repeating: "0", count: 16 - digits.utf8.count) + digits
            }.joined()
        sessions[next] = Session(
            id: next, name: name, rights: rights, secret: Array(secret.utf8), begun: now, used: now)
        next += 1
        return secret
    }

    /// The session of a secret, which is used with this.
    mutating func use(_ secret: String, now: Int64) -> Session? {
        let given = Array(secret.utf8)
        var found: ID?
        // All of them, so that the time tells nothing.
        for session in sessions.values where Secrets.isEqual(session.secret, given) { found = session.id }
        guard let found, isAlive(found, now: now) else { return nil }
        sessions[found]?.used = now
        return sessions[found]
    }

    /// Whether a session goes on. Asking is no use of it.
    func isAlive(_ id: ID, now: Int64) -> Bool { sessions[id].map { isAlive($0, now) } ?? false }

    /// Ends a session.
    mutating func end(_ id: ID) { sessions[id] = nil }

    private func isAlive(_ session: Session, _ now: Int64) -> Bool {
        now - session.used < limits.idle && now - session.begun < limits.life
    }

    private mutating func expire(_ now: Int64) { sessions = sessions.filter { isAlive($0.value, now) } }
}
