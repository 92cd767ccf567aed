// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a stage has reported, each by a name, and when it may report that again: so that what repeats with each picture is
/// not an event with each picture.
///
/// The name is the event's, or says what a line of the log is about. A value of one thread, without a clock.
package struct Reported {
    /// The least time or count at which something is reported again.
    private var next: [String: Int64] = [:]

    package init() {}

    /// Whether this is the first time, or the first since ``forget(_:)``.
    package mutating func isFirst(_ name: String) -> Bool { next.updateValue(.max, forKey: name) == nil }

    /// Whether `interval` has passed since the last time that this was true. It is also true if `now` is before that time,
    /// as where a clip is played again.
    package mutating func isDue(_ name: String, now: Int64, every interval: Int64) -> Bool {
        if let next = next[name], now < next, next - now <= interval { return false }
        next[name] = now + interval
        return true
    }

    /// Whether a count has reached the next of 1, 10, 100 and so on since the last time that this was true.
    package mutating func isNextPower(_ name: String, of count: Int) -> Bool {
        // Mostly nothing has been counted.
        guard count > 0 else { return false }
        var power = next[name] ?? 1
        guard count >= power else { return false }
        while power <= count { power *= 10 }
        next[name] = power
        return true
    }

    /// What has this name is reported again, since it was well in between.
    package mutating func forget(_ name: String) { next[name] = nil }
}

extension StageContext {
    /// Posts an event that a stage posts once. Its text is made only then.
    ///
    /// - Parameter key: What ``Reported`` calls it, if a stage posts the event once for each of several reasons.
    package func post(
        _ event: String, once reported: inout Reported, as key: String? = nil, level: Event.Level = .info,
        text: @autoclosure () -> String, details: @autoclosure () -> JSONNode = JSONNode(.object([]))
    ) {
        if reported.isFirst(key ?? event) { post(event, level: level, text: text(), details: details()) }
    }
}
