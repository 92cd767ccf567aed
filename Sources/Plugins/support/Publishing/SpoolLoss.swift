// SPDX-License-Identifier: Apache-2.0

extension Spool {
    /// Why events were lost.
    package enum Loss: String, Sendable, CaseIterable {
        /// The spool has its full size on disk.
        case spoolFull = "spool-full"
        /// The disk takes nothing, and memory holds as many as it may.
        case memoryFull = "memory-full"
        /// Lines of the spool that cannot be read.
        case damaged
        /// An event's text is too large.
        case tooLarge = "too-large"
        /// Events came faster than they could be written.
        case tooFast = "too-fast"
        /// The server does not take the event.
        case refused
        /// The run ended while the disk took nothing.
        case notWritten = "not-written"

        /// For people: "2 (spool full)".
        var words: String {
            switch self {
            case .spoolFull: "spool full"
            case .memoryFull: "spool not writable, memory full"
            case .damaged: "spool damaged"
            case .tooLarge: "larger than \(EventText.mostBytes >> 10) KiB"
            case .tooFast: "too many at once"
            case .refused: "refused by the server"
            case .notWritten: "spool not writable at the end of the run"
            }
        }
    }
}
