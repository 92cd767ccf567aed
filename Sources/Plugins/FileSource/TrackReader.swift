// SPDX-License-Identifier: Apache-2.0

/// What the reports at the end of a file need to know from the reader.
protocol TrackReader {
    /// Packets and pictures that were damaged.
    var damaged: Int { get }
    /// Packets of the track that were read.
    var packetsRead: Int { get }
    /// Why reading ended early, empty when it did not.
    var readFault: String { get }
    var times: TrackTimes { get }
}
