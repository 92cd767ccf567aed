// SPDX-License-Identifier: Apache-2.0

import Shared

/// A login as addresses have it.
extension ServerLogin {
    /// `name:password` as a URL has it.
    var encoded: String { "\(Self.encode(name)):\(Self.encode(password))" }
    /// The texts that must be hidden.
    var secrets: [String] {
        guard !password.isEmpty else { return [] }
        return [encoded, "\(name):\(password)", Self.encode(password), password]
    }

    /// RFC 3986, 2.1: all but unreserved characters.
    private static func encode(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        var result = ""
        for byte in text.utf8 {
            let scalar = UnicodeScalar(byte)
            if byte < 128,
                scalar.properties.isAlphabetic || (48...57).contains(byte) || "-._~".unicodeScalars.contains(scalar)
            {
                result.unicodeScalars.append(scalar)
            } else {
                result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return result
    }
}
