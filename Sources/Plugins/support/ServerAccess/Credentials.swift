// SPDX-License-Identifier: Apache-2.0

/// Who may play: names and passwords. Never printed: its description says how many there are.
public struct Credentials: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    private var passwords: [String: String] = [:]

    /// Passwords by name.
    public init(_ passwords: [String: String] = [:]) { self.passwords = passwords }

    /// Lines of `name:password`; empty ones and those that begin with `#` are left out.
    ///
    /// - Returns: nil where a line has no colon or no name, with the line's number in `faultyLine`.
    public static func parse(_ text: String) -> (credentials: Credentials?, faultyLine: Int) {
        var result = Credentials()
        for (number, line) in UserLines.of(text) {
            guard let (name, password) = UserLines.split(line[...]), !name.isEmpty else { return (nil, number) }
            result.passwords[String(name)] = String(password)
        }
        return (result, 0)
    }

    /// Whether there is no user.
    public var isEmpty: Bool { passwords.isEmpty }
    /// The password of a user; nil for a name that is not listed.
    public func password(of name: String) -> String? { passwords[name] }

    public var description: String { "\(passwords.count) users" }
    public var debugDescription: String { description }
}
