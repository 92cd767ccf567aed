// SPDX-License-Identifier: Apache-2.0

/// What a login may do (docs/design/047-originals.md).
struct Rights: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    /// Figures, events, and pictures that are not original.
    static let watch = Rights(rawValue: 1)
    /// Commands and changes.
    static let control = Rights(rawValue: 2)
    /// Pictures that a privacy stage has not covered, and commands that show or record such pictures.
    static let originals = Rights(rawValue: 4)

    /// Each right with its word in files and answers.
    static let words: [(word: String, right: Rights)] = [
        ("watch", .watch), ("control", .control), ("originals", .originals),
    ]

    /// The words of these rights.
    var words: [String] { Self.words.filter { contains($0.right) }.map(\.word) }

    /// `watch,control`; nil for another word, for one that comes twice, or without `watch`, which the others need.
    init?(list text: Substring) {
        var rights: Rights = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = word.drop { $0 == " " }
            let bare = word.prefix { $0 != " " }
            guard word.dropFirst(bare.count).allSatisfy({ $0 == " " }),
                let right = Self.words.first(where: { $0.word == bare })?.right, !rights.contains(right)
            else { return nil }
            rights.insert(right)
        }
        guard rights.contains(.watch) else { return nil }
        self = rights
    }

    init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// Who has sent a request, and what that client may do.
struct Caller: Sendable {
    /// How the client has shown who it is.
    enum Way: Sendable, Equatable {
        /// Not at all.
        case none
        case token
        case password
        /// As the page does: by what a login has given it.
        case session(SessionBook.ID)
    }

    var way: Way
    /// Of a user.
    var name: String?
    var rights: Rights
    /// Whether it still may: a session ends.
    var isAlive: @Sendable () -> Bool = { true }

    /// Somebody who has shown nothing and may do nothing.
    static let nobody = Caller(way: .none, rights: [])
    /// Everybody, on a server without users and token.
    static let everybody = Caller(way: .none, rights: [.watch, .control])
}

extension Result<Caller, Refusal> {
    var isAllowed: Bool { if case .success = self { true } else { false } }
}
