// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// The people who may use the server. Never printed: its description says how many there are.
struct UserList: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    static let form = "name:rights:password"
    /// Each may have sessions, so their number is bounded.
    static let most = 256
    /// Bytes of a name, which events show.
    static let longestName = 64

    private struct User {
        var rights: Rights
        var password: String
    }

    private var users: [String: User] = [:]

    /// Why a line is refused.
    struct Fault: Error, Equatable {
        /// From 1 on.
        var line: Int
        /// Of the list: what the line must be. It quotes nothing.
        var rule: String
    }

    /// - Throws: ``Fault``.
    init(_ text: String) throws(Fault) {
        for (number, line) in UserLines.of(text) {
            guard let (name, rest) = UserLines.split(line[...]), let (words, password) = UserLines.split(rest) else {
                throw Fault(line: number, rule: "must be \(Self.form)")
            }
            guard (1...Self.longestName).contains(name.utf8.count),
                name.unicodeScalars.allSatisfy(UserLines.isPrintable)
            else {
                throw Fault(
                    line: number,
                    rule: "must begin with a name of 1 to \(Self.longestName) bytes without control characters")
            }
            guard let rights = Rights(list: words) else {
                throw Fault(
                    line: number,
                    rule:
                        "must have after the name 'watch', 'watch,control', 'watch,originals' or 'watch,control,originals'"
                )
            }
            guard !password.isEmpty else { throw Fault(line: number, rule: "must have a password after the rights") }
            guard users[String(name)] == nil else {
                throw Fault(line: number, rule: "must name a user that no line before it names")
            }
            guard users.count < Self.most else {
                throw Fault(line: number, rule: "is user number \(Self.most + 1), and at most \(Self.most) are allowed")
            }
            users[String(name)] = User(rights: rights, password: String(password))
        }
    }

    var isEmpty: Bool { users.isEmpty }
    var description: String { "\(users.count) users" }
    var debugDescription: String { description }

    /// The rights of a user who gives the right password. The time does not tell whether the name is known.
    func rights(of name: String, password: String) -> Rights? {
        guard let user = users[name] else {
            _ = Secrets.isEqual(password, password)
            return nil
        }
        return Secrets.isEqual(user.password, password) ? user.rights : nil
    }

    /// The file or variable that the option `users` names.
    ///
    /// - Throws: ``FrameHostError``; none shows what is in it.
    static func read(_ place: String, resolve: (String) -> String) throws -> UserList {
        let (text, shown) = try RunFiles.secret(
            at: place, option: "users", content: "lines of \(form)", resolve: resolve)
        let list: UserList
        do { list = try UserList(text) } catch {
            throw FrameHostError(
                .invalidConfiguration, place: "users", what: "line \(error.line) of \(shown) \(error.rule)",
                remedy: "Correct that line, for example to anna:watch,control:PASSWORD.")
        }
        guard !list.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "users", what: "\(shown) must name a user",
                remedy: "Add a line \(form), or leave 'users' out.")
        }
        return list
    }
}
