// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What an errno means.
enum ErrorText {
    /// `No such device`.
    static func of(_ code: Int32) -> String { String(cString: strerror(code)) }
}
