// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension EventDeclaration {
    /// The events of a stage about its inputs (``StageContext/say(input:isLost:)``).
    static let ofInputs = [
        EventDeclaration("input-lost", "An input gives no pictures.", [.string("input", "Its id.")]),
        EventDeclaration("input-back", "An input that was lost gives pictures again.", [.string("input", "Its id.")]),
    ]
}
