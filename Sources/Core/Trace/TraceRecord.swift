// SPDX-License-Identifier: Apache-2.0

/// One entry of a trace as the frame path writes it: 24 bytes, no text.
///
/// The trace thread finds its stage, link and track by the stage's number and the ring.
struct TraceRecord {
    enum Kind: UInt8 {
        /// A stage begins with an input item; `value` is the item's sequence number.
        case item
        /// A source's call begins; `value` is the number of the item it will make, if it makes one.
        case produce
        /// A join's call begins; its ``input`` entries follow.
        case merge
        /// A stage is called for something else; `detail` is the ``StageCall``.
        case call
        /// The newest call that has not ended is over.
        case end
        /// A wait within a call is over; `value` is when it began, `detail` the ``Wait``.
        case wait
        /// An item that a source or join gave, or a stage made; `value` is its sequence number.
        case emit
        /// An item that a join was handed; `detail` is the input, `value` the sequence number.
        case input
        /// Dropped items; `detail` is the ``DropReason``, `value` the first one's sequence number, `depth` how many.
        case drop
        /// What a pool, slab or queue holds now.
        case level
        /// Entries before this one found no room; `value` is how many.
        case gap
    }

    /// What a stage's thread waits for.
    enum Wait: UInt8 {
        /// The clock, a command, a device.
        case time
        /// A free buffer of a pool.
        case buffer
        /// Memory for an access unit.
        case memory
        /// A place in a queue.
        case room

        var name: String {
            switch self {
            case .time: "waits"
            case .buffer: "waits for a buffer"
            case .memory: "waits for memory"
            case .room: "waits for room"
            }
        }
    }

    /// Chain clock, nanoseconds.
    var time: Int64
    var value: Int64
    /// The stage's number.
    var stage: Int32
    var kind: Kind
    var detail: UInt8
    /// How many calls enclose this one on the same thread.
    var depth: UInt16
}
