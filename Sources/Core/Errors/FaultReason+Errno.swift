// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FrameHostError.Reason {
    /// The reason that an errno stands for; nil for most.
    ///
    /// - Parameter code: Libav's negative codes of the same errors are understood too.
    public static func of(errno code: Int32) -> FrameHostError.Reason? {
        [ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM].contains { code == $0 || code == -$0 } ? .outOfResources : nil
    }
}
