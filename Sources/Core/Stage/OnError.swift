// SPDX-License-Identifier: Apache-2.0

/// What a stage's error does to the run.
public enum OnError: String, Sendable, CaseIterable {
    /// The chain drains and ends with status 1.
    case stop
    /// The stage drops everything that follows while the others go on; the run ends with status 1.
    case `continue`
    /// Frames pass the filter untouched; the run ends with status 1.
    case bypass
    /// The runner makes and starts the stage anew after 1 s, 2 s, 4 s … at most 30 s, up to ten times in a row.
    ///
    /// Items that come in the meantime are dropped, and the item that follows is marked as after a gap. If every
    /// attempt fails, the run ends with status 1.
    case restart
}
