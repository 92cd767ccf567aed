// SPDX-License-Identifier: Apache-2.0

/// Numbers what a device sends over WS-Discovery, and bounds its answers: a stranger decides how many there would be.
/// Hello and Bye are the device's own and are always sent, so that no flood of questions swallows them. A value.
struct MessageCounter: Sendable {
    /// Answers of a device in a second, to all askers together.
    static let mostAnswers = 50

    private var sequence: DiscoveryMessage.Sequence
    /// The second that is counted, and the answers in it.
    private var second = Int64.min
    private var answers = 0

    /// - Parameter instance: Higher after each start.
    init(instance: UInt32) { sequence = DiscoveryMessage.Sequence(instance: instance, number: 0) }

    /// The number of a Hello or a Bye.
    mutating func announcement() -> DiscoveryMessage.Sequence {
        sequence.number &+= 1
        return sequence
    }

    /// The number of an answer; nil if there were too many in this second.
    ///
    /// - Parameter now: Nanoseconds of the monotonic clock.
    mutating func answer(now: Int64) -> DiscoveryMessage.Sequence? {
        if second != now / 1_000_000_000 { (second, answers) = (now / 1_000_000_000, 0) }
        guard answers < Self.mostAnswers else { return nil }
        answers += 1
        return announcement()
    }
}
