// SPDX-License-Identifier: Apache-2.0

/// Profiles that clients have made. Synology makes one, gives it the configurations of a stream, and plays that.
///
/// A value in memory, of a bounded size: they are gone after the end of the program, as the specification allows for
/// profiles that are not fixed. A profile that is too many takes the place of the one that was used longest ago, since
/// nobody tells which client of it has gone for good.
struct MadeProfiles: Sendable {
    static let most = 8

    struct Profile: Sendable, Equatable {
        var token: String
        var name: String
        /// The token of a video source's configuration.
        var source: String?
        /// The token of an encoder's configuration, which is that of a stream.
        var encoder: String?
    }

    private(set) var profiles: [Profile] = []
    private var number = 0
    /// Their tokens, the one that was used longest ago first.
    private var uses: [String] = []

    subscript(token: String) -> Profile? { profiles.first { $0.token == token } }

    /// A request names a profile.
    mutating func use(_ token: String) {
        guard let index = uses.firstIndex(of: token) else { return }
        uses.append(uses.remove(at: index))
    }

    mutating func make(name: String, token: String?) throws(SOAPFault) -> Profile {
        guard !name.isEmpty, name.utf8.count <= 64, token?.utf8.count ?? 0 <= 64 else {
            throw .sender("ter:InvalidArgVal", "A profile needs a name of 1 to 64 bytes, and a token of at most 64.")
        }
        number += 1
        let token = token.flatMap { $0.isEmpty ? nil : $0 } ?? "made-\(number)"
        guard self[token] == nil else {
            throw .sender("ter:InvalidArgVal", "ter:ProfileExists", reason: "There is a profile of that token.")
        }
        if profiles.count >= Self.most, let unused = uses.first { try delete(unused) }
        let made = Profile(token: token, name: name)
        profiles.append(made)
        uses.append(token)
        return made
    }

    mutating func change(_ token: String, _ change: (inout Profile) -> Void) throws(SOAPFault) {
        guard let index = profiles.firstIndex(where: { $0.token == token }) else { throw .noProfile(token) }
        change(&profiles[index])
    }

    mutating func delete(_ token: String) throws(SOAPFault) {
        guard let index = profiles.firstIndex(where: { $0.token == token }) else { throw .noProfile(token) }
        profiles.remove(at: index)
        uses.removeAll { $0 == token }
    }
}
