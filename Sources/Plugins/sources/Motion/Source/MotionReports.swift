// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveStates
import Reports

extension MotionSource {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "motion-lost",
            "No motion has come for a second, or the device is gone. The stage goes on when motion comes again.",
            [.string("reason", "Why.")]),
        EventDeclaration(
            "motion-returned", "Motion comes again.", [.number("awayMs", "How long none came (ms).")]),
        EventDeclaration(
            "device-refused", "The device was found again, but cannot be used. The stage keeps trying.",
            [.string("reason", "Why.")]),
        EventDeclaration(
            "samples-left-out",
            "Samples were left out: a number was impossible, or a time did not rise. Posted at most once a second.",
            [
                .number("invalid", "How many had a number that is not finite or beyond what sensors measure."),
                .number("late", "How many had a time that was not later than that of the sample before."),
            ]),
        EventDeclaration(
            "datagrams-refused",
            "Datagrams were left out, because they had no motion or came from a second sender. Posted at most once a second.",
            [
                .number("count", "How many since the last event of this name."),
                .string("sender", "Who sent the last one: address and port."),
                .string("reason", "What was wrong with it."),
            ]),
        EventDeclaration(
            "clock-jumped",
            "The sensor's clock has jumped by more than a second. Its offset from the chain clock is estimated again.",
            [.number("byMs", "By how much (ms).")]),
    ]
}

extension MotionText {
    static func nothingUsable(_ path: String) -> FrameHostError {
        FrameHostError(
            .invalidMedia, place: "path",
            what:
                "none of the samples of '\(path)' can be used: each has an impossible time, attitude or value, such as a value beyond 2000 rad/s or 10000 m/s²",
            remedy:
                "Check the file's times and values. In CSV and JSON, 't' must be in seconds, and 'rotationUnit' and 'accelerationUnit' must be the units of the values. In .gcsv, check 'tscale', 'gscale' and 'ascale' in the header."
        )
    }
}

/// Posts the events of a source of motion, each at most once a second, and knows whether motion comes. [stage thread]
final class MotionReports {
    private let context: StageContext
    /// Since when there is a report due about samples that were left out.
    private var leftOutSince: Int64?
    private var reported = Reported()
    private var refused = 0
    /// The last datagram that was refused.
    private var refusal = (sender: "", reason: "", remedy: "")
    private static let interval: Int64 = 1_000_000_000
    /// Whether motion comes. It is back with its first sample.
    private(set) var live = LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0)
    private(set) var lastMotionAt: Int64 = 0

    init(_ context: StageContext) { self.context = context }

    /// Reports what the gate left out in the last second.
    func leftOut(_ gate: inout SampleGate) {
        guard gate.invalid + gate.late > 0 else { return }
        let now = context.clock.now()
        let since = leftOutSince ?? now
        leftOutSince = since
        guard now - since >= Self.interval else { return }
        leftOutAltogether(&gate)
    }

    /// Reports it at the end, at once.
    func leftOutAltogether(_ gate: inout SampleGate) {
        let (invalid, late) = (gate.invalid, gate.late)
        guard invalid + late > 0 else { return }
        gate.forgetCounts()
        leftOutSince = nil
        func samples(_ count: Int) -> String { count == 1 ? "1 sample" : "\(count) samples" }
        let parts = [
            invalid > 0
                ? "\(samples(invalid)) with an impossible value (not finite, or beyond 2000 rad/s or 10000 m/s²)" : nil,
            late > 0 ? "\(samples(late)) not later than the sample before" : nil,
        ].compactMap { $0 }
        let checks = [
            invalid > 0 ? "the values and, for CSV and JSON, 'rotationUnit' and 'accelerationUnit'" : nil,
            late > 0 ? "the times that the file or the sensor gives" : nil,
        ].compactMap { $0 }
        context.post(
            "samples-left-out", level: .warning,
            text:
                "Samples were left out: \(parts.joined(separator: ", and ")).\(checks.map { " Check \($0)." }.joined())",
            details: ["invalid": .number(invalid), "late": .number(late)])
    }

    /// Counts a datagram that is not motion, and reports it if a second has passed since the last report.
    ///
    /// - Parameter remedy: A sentence; empty where `reason` says enough.
    func refuse(from sender: String, _ reason: String, remedy: String = "") {
        refused += 1
        refusal = (sender, reason, remedy)
        if reported.isDue("datagrams-refused", now: context.clock.now(), every: Self.interval) { refusedAltogether() }
    }

    /// Reports it at the end, at once.
    func refusedAltogether() {
        guard refused > 0 else { return }
        let (sender, reason, remedy) = refusal
        context.post(
            "datagrams-refused", level: .warning,
            text: (refused == 1
                ? "A datagram from \(sender) was left out: it \(reason)."
                : "\(refused) datagrams were left out. The last one, from \(sender), \(reason).")
                + (remedy.isEmpty ? "" : " \(remedy)"),
            details: ["count": .number(refused), "sender": .string(sender), "reason": .string(reason)])
        refused = 0
    }

    func clockJumped(by nanoseconds: Int64) {
        guard reported.isDue("clock-jumped", now: context.clock.now(), every: Self.interval) else { return }
        let milliseconds = nanoseconds / 1_000_000
        context.post(
            "clock-jumped", level: .warning,
            text:
                "The sensor's clock has jumped by \(milliseconds) ms. Its offset from the chain clock is estimated again.",
            details: ["byMs": .number(milliseconds)])
    }

    // MARK: Lost and back

    /// Motion is waited for from now on.
    func begin() { lastMotionAt = context.clock.now() }

    /// Motion has come.
    ///
    /// - Returns: Whether it was lost.
    func came(at now: Int64) -> Bool {
        lastMotionAt = now
        guard case .sayBack(_, let after)? = live.given(now: now) else { return false }
        context.recovering = nil
        context.post(
            "motion-returned", text: "Motion comes again, after \(after / 1_000_000) ms.",
            details: ["awayMs": .number(after / 1_000_000)])
        return true
    }

    /// No motion has come. Where that lasts it is lost.
    func silent(_ reason: @autoclosure () -> String, _ next: String) {
        guard !live.isAway, context.clock.now() - lastMotionAt > LiveWait.patience else { return }
        lost(reason(), next)
    }

    /// - Parameter next: What the stage does now and what a person can check, as sentences.
    func lost(_ reason: String, _ next: String) {
        guard case .sayLost? = live.lost(reason, now: context.clock.now(), since: lastMotionAt) else { return }
        context.recovering = reason
        context.post(
            "motion-lost", level: .warning, text: "There is no motion: \(reason). \(next)",
            details: ["reason": .string(reason)])
    }

    /// A device could not be opened again.
    func missed(_ fault: IIOFault) {
        live.missed(now: context.clock.now())
        guard !fault.isMissing, case .sayRefused? = live.refused(fault.what) else { return }
        context.post(
            "device-refused", level: .warning,
            text: "The device was found again, but \(fault.what). \(fault.remedy) The stage keeps trying.",
            details: ["reason": .string(fault.what)])
    }
}
