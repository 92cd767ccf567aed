// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel's calls have in common.
public enum SystemCall {
    /// Repeats a call that a signal interrupted before it did anything (EINTR, signal(7)). Not for close(2), which
    /// has closed the file by that time. [any thread]
    @inlinable
    public static func retrying<Result: SignedInteger>(_ call: () -> Result) -> Result {
        while true {
            let result = call()
            if result != -1 || errno != EINTR { return result }
        }
    }
}
