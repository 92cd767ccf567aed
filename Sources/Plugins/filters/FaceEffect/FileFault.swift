// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The sentence about a file that face-effect reads.
enum FileFault {
    static func cannotRead(_ path: String, _ error: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "\(path) cannot be read: \(String(cString: strerror(error)))",
            remedy: "Check that the file is there and that this user may read it, or name another with 'model'.",
            option: "model")
    }
}
