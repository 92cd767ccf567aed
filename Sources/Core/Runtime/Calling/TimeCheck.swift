// SPDX-License-Identifier: Apache-2.0

/// Checks that the items that a stage makes have rising times. A transform that forgets `copyProperties(from:)` gives
/// each frame the time 0, and the stages behind it cannot use them.
///
/// Frames are looked at by PTS, access units by decode time. Belongs to the stage thread; the control thread reads it
/// after the run.
struct TimeCheck {
    /// The time of the last item that was given.
    private var lastGiven: MediaTime?
    private var lastCome: MediaTime?
    /// Whether the times of the input rise: then a wrong time behind the stage is the stage's own fault.
    private var inputRises = true
    private(set) var given = 0
    /// Items whose time is not later than that of the one before, by this stage's own fault.
    private(set) var wrong = 0

    /// Whether most items that the stage gave have a wrong time.
    var isMostlyWrong: Bool { wrong >= 3 && wrong > given / 2 }

    /// Looks at an item that came in.
    @inline(__always)
    mutating func came(_ time: MediaTime) {
        if let lastCome, time <= lastCome { inputRises = false }
        lastCome = time
    }

    /// Looks at an item that is given; true for the first wrong one.
    @inline(__always)
    mutating func gave(_ time: MediaTime) -> Bool {
        given &+= 1
        defer { lastGiven = time }
        guard let lastGiven, time <= lastGiven, inputRises else { return false }
        wrong &+= 1
        return wrong == 1
    }
}

extension StageRunner {
    /// [stage thread] Reports the first item whose time does not rise.
    func reportTime(_ record: UnsafeMutablePointer<LeaseRecord>) {
        let time = record.pointee.header.orderTime
        context.post(
            "time-not-rising", level: .warning,
            text:
                "\(title) gave frame \(record.pointee.header.sequenceNumber) the time \(text(seconds: time.seconds)) s, which is not later than that of the frame before."
                + " Later stages may skip such frames. \(timeRemedy)",
            details: [
                "frame": JSONNode(.number(String(record.pointee.header.sequenceNumber))),
                "ptsNanoseconds": JSONNode(.number(String(time.nanoseconds))),
            ])
    }

    /// [control thread, after the run] The fault of a stage most of whose items had a wrong time.
    var timeFault: FrameHostError? {
        guard times.check.isMostlyWrong else { return nil }
        return FrameHostError(
            .broken, place: title,
            what:
                "\(times.check.wrong) of \(times.check.given) frames had a time that was not later than that of the frame before",
            remedy: timeRemedy)
    }

    /// The fault of the first item whose time does not rise, for ``StageDriver``.
    var firstTimeFault: FrameHostError? {
        guard times.check.wrong > 0 else { return nil }
        return FrameHostError(
            .broken, place: title,
            what: "a frame was given a time that is not later than that of the frame before", remedy: timeRemedy)
    }

    private var timeRemedy: String {
        if case .encoded = shown.info.output {
            return
                "In the plugin, give each access unit a dts that is later than that of the unit before; if the plugin is not yours, tell its author."
        }
        return kind == .source
            ? "In the plugin, set a pts that rises from frame to frame; if the plugin is not yours, tell its author."
            : "In the plugin, call copyProperties(from:) on each new frame before emitting it, or set its pts; if the plugin is not yours, tell its author."
    }
}
