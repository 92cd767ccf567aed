// SPDX-License-Identifier: Apache-2.0

/// Passwords and tokens.
public enum Secrets {
    /// Compares in a time that does not depend on where two texts differ.
    ///
    /// - Parameters:
    ///   - right: The secret. The time depends on its length alone.
    ///   - given: What a client says.
    public static func isEqual(_ right: String, _ given: String) -> Bool {
        isEqual(Array(right.utf8), Array(given.utf8))
    }

    /// The same for bytes.
    public static func isEqual(_ right: [UInt8], _ given: [UInt8]) -> Bool {
        var difference: UInt8 = right.count == given.count ? 0 : 1
        for index in right.indices { difference |= right[index] ^ (index < given.count ? given[index] : 0) }
        return difference == 0
    }
}
