// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The standard streams that a run uses itself. No stage may use them, since each has one user.
enum StandardStreams {
    static func ofRun(events: Bool, commands: Bool) -> [ChainRequest.OwnStream] {
        var own: [ChainRequest.OwnStream] = []
        if events {
            own.append(ChainRequest.OwnStream(.output, argument: "--events", what: "where events would go"))
        } else if commands {
            own.append(
                ChainRequest.OwnStream(.output, argument: "--commands", what: "where answers to commands would go"))
        }
        if commands {
            own.append(ChainRequest.OwnStream(.input, argument: "--commands", what: "where commands would come from"))
        }
        return own
    }
}
