// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What happens when a source is not there at the start.
package enum IfMissing: String, OptionChoice {
    case fail
    /// The chain starts, and shows `whileLost` until it comes.
    case wait
}

/// What is shown while a source is away.
package enum WhileLost: String, OptionChoice {
    /// Its last picture, at most a second old when it was lost.
    case hold
    /// A colour, a picture or a text.
    case slate
    /// Nothing is shown: the stage fails.
    case stop
}
