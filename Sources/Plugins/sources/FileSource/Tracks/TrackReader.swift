// SPDX-License-Identifier: Apache-2.0

/// What the reports at the end of a file need to know from the reader.
protocol TrackReader {
    /// Packets and pictures that were damaged.
    var damaged: Int { get }
    /// How many of them are pictures that were given, with parts that the decoder guessed, and the tick of the first.
    var concealed: Int { get }
    var firstConcealed: Int64? { get }
    /// Packets of the track that were read.
    var packetsRead: Int { get }
    /// Why reading ended early, empty when it did not.
    var readFault: String { get }
    var times: TrackTimes { get }
    /// What was read since it last began to read.
    var notes: PacketNotes { get }
    /// What of ``damaged`` a file may have at its start that was cut out of a longer one.
    var damagedAtStart: Int { get }
    /// How many packets count as ``damaged`` only because libavformat has marked them.
    var marked: Int { get }
    /// How many pictures came out of the decoder; nil where it has none, or where there are two packets to a picture.
    var decoded: Int? { get }
    /// The tick of the first picture that came out of the decoder.
    var firstDecodedTick: Int64? { get }
}
