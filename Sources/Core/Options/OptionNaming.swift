// SPDX-License-Identifier: Apache-2.0

/// Finds the option that an error is about when its place does not name one.
enum OptionNaming {
    /// The option of `members` that a sentence is about. It is quoted in the sentence ("'track' is 3"), or is its
    /// first word ("stamp needs …"), or its value stands there ("'/clips/no.mp4' does not exist"), or else it is
    /// quoted in the remedy.
    static func option(in what: String, or remedy: String = "", _ members: [JSONNode.Member]) -> String? {
        func quoted(_ text: String) -> String? {
            members.compactMap { member in
                text.firstRange(of: "'\(member.key)'").map { (at: $0.lowerBound, key: member.key) }
            }
            .min { $0.at < $1.at }?.key
        }
        if let found = quoted(what) { return found }
        let first = what.prefix { $0 != " " && $0 != ":" }
        if let member = members.first(where: { $0.key == first }) { return member.key }
        func isQuoted(_ value: String?) -> Bool {
            guard let value, !value.isEmpty else { return false }
            // A short value can occur anywhere, so it must be all of a quoted text, or the end of a quoted path.
            return value.utf8.count >= 3 && what.firstRange(of: value) != nil
                || what.firstRange(of: "'\(value)'") != nil || what.firstRange(of: "/\(value)'") != nil
        }
        return members.first { isQuoted($0.value.asString) }?.key ?? quoted(remedy)
    }
}
