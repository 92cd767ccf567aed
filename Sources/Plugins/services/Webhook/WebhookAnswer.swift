// SPDX-License-Identifier: Apache-2.0

/// What an answer of a receiver means for an event. Pure.
enum WebhookAnswer: Equatable {
    /// The receiver has it.
    case taken
    /// The receiver does not take this event, and would not take it later.
    case refused(String)
    /// It is sent again, after so many seconds if the receiver says when.
    case notTaken(String, after: Int?)

    /// Codes of 400...499 that say something about the receiver or the login and nothing about the event: all events
    /// would get them. They wait until somebody has corrected it (RFC 9110, section 15.5, and RFC 6585).
    private static let ofTheReceiver: Set<Int> = [
        401, 402, 403, 404, 405, 407, 408, 410, 421, 423, 424, 425, 426, 429, 451,
    ]

    /// - Parameters:
    ///   - status: The code of the answer.
    ///   - retryAfter: Seconds of its field Retry-After; nil without one.
    init(status: Int, retryAfter: Int? = nil) {
        switch status {
        case 200...299: self = .taken
        case 300...399:
            self = .notTaken(
                "it answers \(status) and names another address, and redirects are not followed", after: nil)
        case 400...499 where !Self.ofTheReceiver.contains(status): self = .refused("it answers \(status)")
        case 400...499: self = .notTaken("it answers \(status)", after: status == 429 ? retryAfter : nil)
        default: self = .notTaken("it answers \(status)", after: retryAfter)
        }
    }
}

/// How long nothing is sent after an event was not taken. A value: what happened goes in.
struct WebhookPause: Equatable {
    /// The first pause and the longest, in milliseconds.
    static let first = 1000
    static let longest = 60_000
    /// The longest pause that a receiver can ask for, in seconds.
    static let mostAsked = 600

    private var next = first

    /// The pause before the next attempt, in milliseconds. It doubles each time.
    ///
    /// - Parameters:
    ///   - asked: What the receiver asks for, in seconds.
    ///   - share: 0...1, random: many hosts that lost one receiver do not come back at once.
    mutating func take(asked: Int?, share: Double = .random(in: 0...1)) -> Int {
        let own = next - Int(Double(next / 4) * share)
        next = min(2 * next, Self.longest)
        return max(own, min(max(asked ?? 0, 0), Self.mostAsked) * 1000)
    }

    /// An event was taken.
    mutating func reset() { next = Self.first }
}
